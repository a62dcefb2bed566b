"""The schema that the steps make is the schema that the code speaks of."""

from __future__ import annotations

import sqlite3
from contextlib import closing
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


def test_the_id_of_a_removed_repository_is_not_given_again_and_older_databases_keep_their_rows(tmp_path: Path) -> None:
    url, path = f"sqlite+aiosqlite:///{tmp_path}/x.db", tmp_path / "x.db"
    migrate(url)
    row = "(kind, namespace_id, name, folded, private, gated, strict, disabled, created, modified, downloads)"
    add = f"INSERT INTO repo {row} VALUES ('model', 1, '{{0}}', '{{0}}', 0, '', 0, 0, 0, 0, 0) RETURNING id"
    with closing(sqlite3.connect(path)) as old, old:  # as version 0003 made it
        made = old.execute("SELECT sql FROM sqlite_master WHERE name = 'repo'").fetchone()[0]
        old.execute("DROP TABLE repo")
        old.execute(made.replace(" PRIMARY KEY AUTOINCREMENT", "").replace("UNIQUE", "PRIMARY KEY (id), UNIQUE", 1))
        old.execute("INSERT INTO namespace (id, name, folded, kind, created) VALUES (1, 'n', 'n', 'org', 0)")
        old.execute(add.format("kept"))
        old.execute("INSERT INTO repo_tag VALUES (1, 'tag')")
        old.execute("INSERT INTO tree_facts VALUES ('t', '{}')")
        old.execute("UPDATE alembic_version SET version_num = '0003'")
    migrate(url)
    with closing(sqlite3.connect(path)) as new, new:
        assert new.execute("SELECT id, name FROM repo").fetchall() == [(1, "kept")]
        assert new.execute("SELECT * FROM repo_tag").fetchall() == [(1, "tag")]
        assert new.execute("SELECT * FROM tree_facts").fetchall() == [], "they are read anew, by stricter rules"
        (second,) = new.execute(add.format("second")).fetchone()
        new.execute("DELETE FROM repo WHERE id = ?", (second,))
        (third,) = new.execute(add.format("third")).fetchone()
        assert third > second
