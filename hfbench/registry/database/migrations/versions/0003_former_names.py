"""Names that repositories had before they were moved."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table of former names."""
    op.create_table(
        "former_name",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_former_name_repo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("kind", "namespace", "name", name=op.f("pk_former_name")),
    )
    op.create_index(op.f("ix_former_name_repo_id"), "former_name", ["repo_id"], unique=False)


def downgrade() -> None:
    """Drop it."""
    op.drop_table("former_name")
