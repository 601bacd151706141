"""Whatever is no call is found by its kind: there is little of it, among many calls."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the index; calls are not in it, so that it costs them nothing."""
    others = sa.text("kind <> 'call'")
    op.create_index(
        "logs_kind",
        "tool_execution_logs",
        ["kind", "chain", "sequence"],
        sqlite_where=others,
        postgresql_where=others,
    )
