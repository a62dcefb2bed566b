"""Brings a database to the schema of this version, from nothing or from any version before."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from hfbench.registry.database.engine import sync_url
from hfbench.registry.database.trouble import in_words

WHERE = "hfbench.registry.database:migrations"


def migrate(url: str) -> None:
    """Run the steps that are still missing, in one transaction. HfbenchError when the database cannot be used."""
    engine = create_engine(sync_url(url))
    try:
        with in_words(url), engine.begin() as connection:
            config = Config()
            config.set_main_option("script_location", WHERE)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()
