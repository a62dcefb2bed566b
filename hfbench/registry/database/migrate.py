"""Brings a database to the schema of this version, from nothing or from any version before."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from hfbench.registry.database.engine import sync_url

WHERE = "hfbench.registry.database:migrations"


def migrate(url: str) -> None:
    """Run the steps that are still missing, in one transaction."""
    engine = create_engine(sync_url(url))
    try:
        with engine.begin() as connection:
            config = Config()
            config.set_main_option("script_location", WHERE)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()
