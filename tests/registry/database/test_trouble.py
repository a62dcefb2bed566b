"""A database that cannot be used is a sentence with its place and what to do, and never a password."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from hfbench.errors import HfbenchError
from hfbench.registry.administration import list_users
from hfbench.registry.database.migrate import migrate
from hfbench.registry.founding import found
from hfbench.registry.settings import Settings
from hfbench.registry.upkeep.session import on_hub
from hfbench.registry.upkeep.use import measure


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    settings = Settings(folder=str(tmp_path / "hub"))
    found(settings, "boss")
    path = next((tmp_path / "hub").glob("*.db"))
    path.write_bytes(os.urandom(4000))
    for deed in (
        lambda: list_users(settings),
        lambda: migrate(settings.database_url),
        lambda: on_hub(settings, lambda hub: measure(hub, 10)),
    ):
        with pytest.raises(HfbenchError, match=r"file is not a database.*put back a backup") as told:
            deed()
        assert told.value.where == str(path)


def test_a_server_that_is_not_there_is_told_without_the_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    url = "postgresql://alice:sesame@127.0.0.1:1/hub"
    with pytest.raises(HfbenchError, match="Is the server running") as told:
        found(Settings(folder=str(tmp_path / "hub"), database=url), "boss")
    assert "sesame" not in str(told.value)
    assert "alice" in str(told.value.where)


def test_a_database_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    settings = Settings(folder=str(tmp_path / "hub"))
    found(settings, "boss")
    engine = create_engine(f"sqlite:///{next((tmp_path / 'hub').glob('*.db'))}")
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(HfbenchError, match="newer hfbench"):
        migrate(settings.database_url)
