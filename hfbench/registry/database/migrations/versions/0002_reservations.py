"""Room that uploads were promised."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table of reservations."""
    op.create_table(
        "reservation",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("content", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_reservation_repo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("repo_id", "content", name=op.f("pk_reservation")),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("reservation")
