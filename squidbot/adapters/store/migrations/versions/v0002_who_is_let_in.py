"""Tokens of members, and the keys that all gateways of one database share."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create both; members have had their table from the beginning."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("member_id", sa.Text, sa.ForeignKey("squad_members.id"), nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("role", sa.Text),
        # Called so because `right` is a word of SQL.
        sa.Column("gateway_right", sa.Text),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("expires", sa.Double),
        sa.Column("revoked", sa.Boolean, nullable=False),
        sa.CheckConstraint("(role IS NULL) <> (gateway_right IS NULL)", name="role_or_right"),
    )
    op.create_table(
        "gateway_keys", sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)
    )
