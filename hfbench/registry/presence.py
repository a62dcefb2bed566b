"""Whether a folder holds a whole hub: its key and its database. Nothing is made, removed or called sound without both.

A database that is gone, or new, looks like a hub that needs none of its content: whoever swept it would remove all.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import create_engine, inspect, select

from hfbench.errors import HfbenchError, MissingError
from hfbench.registry.database.engine import sync_url
from hfbench.registry.database.schema import accounts
from hfbench.registry.database.trouble import in_words, place_of
from hfbench.registry.settings import Settings
from hfbench.registry.storage.layout import FANS, Layout

KEY_BYTES = 32
_RESTORE = (
    "nothing was changed: put back the database of a backup (hfbench registry backup makes one),"
    " and hfbench registry fsck tells what that lacks"
)


def require_hub(settings: Settings) -> None:
    """HfbenchError unless the key of the hub is there and its database knows at least the account it began with."""
    read_key(settings.layout)
    url, path = settings.database_url, settings.layout.database
    if not settings.database and (not path.exists() or not path.stat().st_size):
        raise MissingError("the database of this hub is gone", where=path, remedy=_RESTORE)
    engine = create_engine(sync_url(url))
    try:
        with in_words(url), engine.connect() as connection:
            known = inspect(connection).has_table(accounts.name)
            first = select(accounts.c.name, accounts.c.created).order_by(accounts.c.id).limit(1)
            founder = connection.execute(first).first() if known else None
    finally:
        engine.dispose()
    if founder is None:
        raise MissingError(
            "the database of this hub is empty: it is not the one it had", where=place_of(url), remedy=_RESTORE
        )
    _require_same(settings, hashlib.sha256(f"{founder.name} {founder.created!r}".encode()).hexdigest())


def _require_same(settings: Settings, id: str) -> None:
    """HfbenchError when the folder was used with another database: that one would call all content here unneeded.

    A database is known by its first account, which stays, in every backup as well.
    """
    layout = settings.layout
    if not layout.identity.exists():
        fresh = layout.identity.with_suffix(f".{os.getpid()}.new")
        with suppress(OSError):  # noted next time, where the disk is full
            fresh.write_text(id, encoding="ascii")
            os.replace(fresh, layout.identity)
    elif layout.identity.read_text("ascii", "replace").strip() != id:
        raise HfbenchError(
            "the database is of another hub than this folder",
            where=place_of(settings.database_url),
            remedy=f"name the right one in {layout.settings}; where they do belong together, remove {layout.identity}",
        )


def require_no_content(layout: Layout) -> None:
    """HfbenchError where a hub is to be made and the content of another one lies: its settings or database are gone."""
    kinds = (layout.root / kind / fan for kind in ("blobs", "xorbs") for fan in FANS)
    if (found := next((folder for folder in kinds if _has_files(folder)), None)) is not None:
        raise HfbenchError(
            "holds content of a hub whose settings are gone",
            where=found.parent,
            remedy="put back registry.toml and the database of a backup, or name an empty --folder",
        )


def read_key(layout: Layout) -> bytes:
    """The key that signs links. HfbenchError when it is gone, or too short to keep anybody from guessing it."""
    remedy = (
        f"put it back from a backup; or make a new one, which ends all upload links that are out:"
        f" (umask 077; head -c {KEY_BYTES} /dev/urandom > {layout.secret})"
    )
    try:
        key = layout.secret.read_bytes()
    except FileNotFoundError as error:
        raise MissingError("the key of this hub is gone", where=layout.secret, remedy=remedy) from error
    except OSError as error:
        raise HfbenchError(f"the key of this hub cannot be read: {error.strerror}", where=layout.secret) from error
    if len(key) < KEY_BYTES:
        raise HfbenchError(
            f"the key of this hub has {len(key)} bytes, and needs {KEY_BYTES}", where=layout.secret, remedy=remedy
        )
    return key


def _has_files(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(True for _ in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
