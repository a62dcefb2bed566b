"""A new hub: its folder, its key, its schema and its first account."""

from __future__ import annotations

import getpass
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.errors import UsageError
from hfbench.registry.access.tokens import new_token
from hfbench.registry.database.engine import Database
from hfbench.registry.database.migrate import migrate
from hfbench.registry.database.people import add_account, add_token, count_accounts
from hfbench.registry.database.trouble import in_words
from hfbench.registry.errors import Refusal
from hfbench.registry.names import check_name
from hfbench.registry.presence import KEY_BYTES, require_hub, require_no_content
from hfbench.registry.settings import Settings, read_settings
from hfbench.registry.storage.drafts import sync_folder
from hfbench.registry.storage.sweeping import make_folders

FIRST_TOKEN = "first"
T = TypeVar("T")


def found(settings: Settings, admin: str) -> str:
    """Make a hub with an administrator; the token to log in with, which is told only now."""
    layout = settings.layout
    if layout.settings.exists():
        raise UsageError("there is a hub already", where=layout.root, remedy="hfbench registry serve starts it")
    _check_admin(admin)
    require_no_content(layout)
    make_folders(layout)
    _write_secret(settings)
    migrate(settings.database_url)
    secret = _with_database(settings, lambda connection: _first_account(connection, admin))
    require_hub(settings)
    draft = layout.settings.with_suffix(".new")
    draft.write_text(settings.toml(), encoding="utf-8")
    os.rename(draft, layout.settings)  # last: a folder with settings is a whole hub
    sync_folder(layout.root)
    return secret


def read_or_found(folder: Path) -> tuple[Settings, str]:
    """The hub of a folder, and the name of the account that a new one was made for; empty where there was a hub.

    A hub is made in a folder that is absent or empty. Its first token is told to nobody: another is made on the spot.
    """
    if folder.is_dir() and any(folder.iterdir()):
        return read_settings(folder), ""
    settings, admin = Settings(folder=str(folder.absolute())), login_name()
    found(settings, admin)
    return settings, admin


def login_name() -> str:
    """The user's name on this machine; `admin` for a user id without an entry, and for a name no hub takes."""
    try:
        return check_name(getpass.getuser(), "namespace")
    except (KeyError, OSError, Refusal):
        return "admin"


def _check_admin(name: str) -> None:
    try:
        check_name(name, "namespace")
    except Refusal as error:
        raise UsageError(error.found, where="--admin", remedy="letters, digits, - and _") from error


async def _first_account(connection: AsyncConnection, admin: str) -> str:
    if await count_accounts(connection):
        raise UsageError("the database has accounts already", remedy="give each hub a database of its own")
    token = new_token()
    account = await add_account(connection, admin, is_admin=True)
    await add_token(connection, account, FIRST_TOKEN, token, scope="write")
    return token.secret


def _write_secret(settings: Settings) -> None:
    path = settings.layout.secret
    if path.exists() and path.stat().st_size >= KEY_BYTES:
        return  # of a founding that was cut off, or of a hub whose settings are gone
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())


def with_database(settings: Settings, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
    """Do some work in one transaction from a process without an event loop. HfbenchError when the database cannot be
    used, or is gone."""
    require_hub(settings)
    return _with_database(settings, work)


def _with_database(settings: Settings, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
    import asyncio

    async def run() -> T:
        database = Database(settings.database_url)
        try:
            async with database.writing() as connection:
                return await work(connection)
        finally:
            await database.close()

    with in_words(settings.database_url):
        return asyncio.run(run())
