"""The trail, its chains and owners, grants, members, alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_IDENTITY = ("role", "server", "tool", "arguments")


def upgrade() -> None:
    """Create everything."""
    _create_records()
    _create_intents()
    _create_chains()
    _create_grants()
    _create_alerts()


def _create_records() -> None:
    op.create_table(
        "tool_execution_logs",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("timestamp", sa.Text, nullable=False),
        sa.Column("squad_member_id", sa.Text),
        *(sa.Column(name, sa.Text, nullable=False) for name in _IDENTITY),
        sa.Column("result", sa.Text),
        sa.Column("success", sa.Boolean, nullable=False),
        sa.Column("error_message", sa.Text),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("duration", sa.Double, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("revision", "kind", "chain", "hash")),
        sa.PrimaryKeyConstraint("chain", "sequence"),
        sqlite_with_rowid=False,
    )
    # What people filter by, each with the order they read in: the last so many of a role are there at once.
    op.create_index("logs_id", "tool_execution_logs", ["id"], unique=True)
    op.create_index("logs_timestamp", "tool_execution_logs", ["chain", "timestamp", "sequence"])
    for column in ("role", "server", "tool"):
        op.create_index(f"logs_{column}", "tool_execution_logs", [column, "chain", "sequence"])
    # Nearly all are `ok`, and whoever asks for those finds them without an index.
    failed = sa.text("outcome <> 'ok'")
    op.create_index(
        "logs_outcome",
        "tool_execution_logs",
        ["outcome", "chain", "sequence"],
        sqlite_where=failed,
        postgresql_where=failed,
    )


def _create_intents() -> None:
    op.create_table(
        "tool_execution_intents",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("timestamp", sa.Text, nullable=False),
        sa.Column("squad_member_id", sa.Text),
        *(sa.Column(name, sa.Text, nullable=False) for name in _IDENTITY),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("origin", "revision", "kind", "chain", "owner", "hash")
        ),
        sa.PrimaryKeyConstraint("chain", "sequence"),
        sqlite_with_rowid=False,
    )
    op.create_index("intents_id", "tool_execution_intents", ["id"], unique=True)


def _create_chains() -> None:
    op.create_table(
        "audit_chains",
        sa.Column("chain", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("base_sequence", sa.BigInteger, nullable=False),
        sa.Column("base_hash", sa.Text, nullable=False),
        sa.Column("first_hash", sa.Text, nullable=False),
    )
    op.create_table(
        "audit_registry",
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("chain", sa.Text, nullable=False, unique=True),
        sa.Column("first_hash", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_table(
        "audit_owners",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("chain", sa.Text, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
    )


def _create_grants() -> None:
    op.create_table(
        "agent_mcp_tools",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("mcp_server", sa.Text, nullable=False),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.UniqueConstraint("role", "mcp_server", "tool_name"),
    )
    version = op.create_table(
        "grants_version",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(version, [{"id": 1, "version": 0}])
    op.create_table(
        "squad_members", sa.Column("id", sa.Text, primary_key=True), sa.Column("name", sa.Text, nullable=False)
    )


def _create_alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("timestamp", sa.Text, nullable=False, index=True),
        sa.Column("rule", sa.Text, nullable=False),
        *(sa.Column(name, sa.Text) for name in ("role", "server", "tool")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("message", "details")),
    )
    op.create_table(
        "first_uses",
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("role", "server", "tool")),
        sa.Column("timestamp", sa.Text, nullable=False),
    )
