"""All tables as they are now: what a new database is given at once.

An older one comes here step by step (`migrations`), and a test holds both ways to the same tables. Alembic, which takes those
steps, is as large as all else that the store loads, and most databases never need it.
"""

import sqlalchemy as sa

_METADATA = sa.MetaData()
_IDENTITY = ("role", "server", "tool", "arguments")
_FAILED = sa.text("outcome <> 'ok'")
_NO_CALL = sa.text("kind <> 'call'")


def create(connection: sa.Connection, version: str) -> None:
    """Make every table in an empty database, with what must be in them."""
    _METADATA.create_all(connection, checkfirst=False)
    connection.execute(_VERSION.insert().values(version_num=version))
    connection.execute(_GRANTS_VERSION.insert().values(id=1, version=0))


def _texts(*names: str) -> list["sa.Column[str]"]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


_VERSION = sa.Table(
    "alembic_version",
    _METADATA,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_LOGS = sa.Table(
    "tool_execution_logs",
    _METADATA,
    *_texts("id", "timestamp"),
    sa.Column("squad_member_id", sa.Text),
    *_texts(*_IDENTITY),
    sa.Column("result", sa.Text),
    sa.Column("success", sa.Boolean, nullable=False),
    sa.Column("error_message", sa.Text),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    *_texts("origin", "outcome"),
    sa.Column("duration", sa.Double, nullable=False),
    *_texts("revision", "kind", "chain", "hash"),
    sa.PrimaryKeyConstraint("chain", "sequence"),
    sa.Index("logs_id", "id", unique=True),
    # What people filter by, each with the order they read in: the last so many of a role are there at once.
    sa.Index("logs_timestamp", "chain", "timestamp", "sequence"),
    *(sa.Index(f"logs_{column}", column, "chain", "sequence") for column in ("role", "server", "tool")),
    # Nearly all are `ok`, and whoever asks for those finds them without an index.
    sa.Index("logs_outcome", "outcome", "chain", "sequence", sqlite_where=_FAILED, postgresql_where=_FAILED),
    # And nearly all are calls.
    sa.Index("logs_kind", "kind", "chain", "sequence", sqlite_where=_NO_CALL, postgresql_where=_NO_CALL),
    sqlite_with_rowid=False,
)
_INTENTS = sa.Table(
    "tool_execution_intents",
    _METADATA,
    *_texts("id", "timestamp"),
    sa.Column("squad_member_id", sa.Text),
    *_texts(*_IDENTITY),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    *_texts("origin", "revision", "kind", "chain", "owner", "hash"),
    sa.PrimaryKeyConstraint("chain", "sequence"),
    sa.Index("intents_id", "id", unique=True),
    sqlite_with_rowid=False,
)
_CHAINS = sa.Table(
    "audit_chains",
    _METADATA,
    sa.Column("chain", sa.Text, primary_key=True),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    *_texts("hash"),
    sa.Column("base_sequence", sa.BigInteger, nullable=False),
    *_texts("base_hash", "first_hash"),
)
_REGISTRY = sa.Table(
    "audit_registry",
    _METADATA,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("chain", sa.Text, nullable=False, unique=True),
    *_texts("first_hash", "hash"),
)
_OWNERS = sa.Table(
    "audit_owners",
    _METADATA,
    sa.Column("owner", sa.Text, primary_key=True),
    *_texts("chain"),
    sa.Column("since", sa.BigInteger, nullable=False),
)
_GRANTS = sa.Table(
    "agent_mcp_tools",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    *_texts("role", "mcp_server", "tool_name"),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.UniqueConstraint("role", "mcp_server", "tool_name"),
)
_GRANTS_VERSION = sa.Table(
    "grants_version",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)
_MEMBERS = sa.Table("squad_members", _METADATA, sa.Column("id", sa.Text, primary_key=True), *_texts("name"))
_ALERTS = sa.Table(
    "alerts",
    _METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("timestamp", sa.Text, nullable=False, index=True),
    *_texts("rule"),
    *(sa.Column(name, sa.Text) for name in ("role", "server", "tool")),
    *_texts("message", "details"),
)
_FIRST_USES = sa.Table(
    "first_uses",
    _METADATA,
    *(sa.Column(name, sa.Text, primary_key=True) for name in ("role", "server", "tool")),
    *_texts("timestamp"),
)
_TOKENS = sa.Table(
    "tokens",
    _METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("member_id", sa.Text, sa.ForeignKey("squad_members.id"), nullable=False),
    *_texts("digest"),
    sa.Column("role", sa.Text),
    # Called so because `right` is a word of SQL.
    sa.Column("gateway_right", sa.Text),
    *_texts("created"),
    sa.Column("expires", sa.Double),
    sa.Column("revoked", sa.Boolean, nullable=False),
    sa.CheckConstraint("(role IS NULL) <> (gateway_right IS NULL)", name="role_or_right"),
)
_KEYS = sa.Table("gateway_keys", _METADATA, sa.Column("name", sa.Text, primary_key=True), *_texts("value"))
