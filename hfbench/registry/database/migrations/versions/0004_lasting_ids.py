"""Ids of repositories that are never given again, and facts that are read anew by stricter rules."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from hfbench.registry.database.schema import repos

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """SQLite gives the highest id again once its row is gone: a permission for one repository must not open another.

    Its tables are made again for that, whose rows, and those that refer to them, stay.
    """
    if op.get_bind().dialect.name == "sqlite":
        with op.batch_alter_table("repo", recreate="always", table_kwargs={"sqlite_autoincrement": True}):
            pass
    op.execute(sa.text("DELETE FROM tree_facts"))
    op.execute(sa.update(repos).values(facts_tree=None))


def downgrade() -> None:
    """Nothing: the older version reads this schema as well."""
