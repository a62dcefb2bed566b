"""The schema that the steps make is the schema that the code speaks of."""

from __future__ import annotations

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from hfbench.registry.database.engine import sync_url
from hfbench.registry.database.migrate import migrate
from hfbench.registry.database.schema import metadata


def test_the_steps_make_the_schema_and_running_them_again_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/x.db"
    migrate(url)
    migrate(url)
    engine = create_engine(sync_url(url))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()
