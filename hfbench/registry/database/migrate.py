"""Brings a database to the schema of this version, from nothing or from any version before."""

from __future__ import annotations

from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event

from hfbench.registry.database.engine import sync_url
from hfbench.registry.database.trouble import in_words

WHERE = "hfbench.registry.database:migrations"


def migrate(url: str) -> None:
    """Run the steps that are still missing, in one transaction. HfbenchError when the database cannot be used."""
    engine = create_engine(sync_url(url))
    if engine.dialect.name == "sqlite":
        _speak_sqlite(engine)
    try:
        with in_words(url), engine.begin() as connection:
            config = Config()
            config.set_main_option("script_location", WHERE)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def _speak_sqlite(engine: Engine) -> None:
    """One transaction for all steps, and no row goes because a table it refers to is made again."""

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys=OFF")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
