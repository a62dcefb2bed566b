"""Errors of a database in words: which database, what it said, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, ProgrammingError

from hfbench.errors import HfbenchError

DAMAGED = ("malformed", "not a database")


@contextmanager
def in_words(url: str) -> Iterator[None]:
    """HfbenchError for a database that cannot be reached or read; faults of a query stay what they are."""
    from alembic.util import CommandError

    try:
        yield
    except (IntegrityError, ProgrammingError):
        raise
    except DBAPIError as error:
        told = (str(error.orig).strip() or "no reason given").splitlines()[0].strip()
        raise HfbenchError(f"the database cannot be used: {told}", where=place_of(url), remedy=_remedy(url)) from error
    except CommandError as error:
        found = "the database is of a newer hfbench than this one"
        raise HfbenchError(found, where=place_of(url), remedy="update hfbench") from error


def is_damaged(error: BaseException) -> bool:
    """Whether an error tells that the file of the database is not what it was."""
    return isinstance(error, DatabaseError) and any(words in str(error.orig) for words in DAMAGED)


def place_of(url: str) -> str:
    """The file of a database, or its address without the password."""
    parsed = make_url(url)
    if parsed.drivername.startswith("sqlite"):
        return parsed.database or ""
    return parsed.set(drivername=parsed.get_backend_name()).render_as_string(hide_password=True)


def _remedy(url: str) -> str:
    if make_url(url).drivername.startswith("sqlite"):
        return "if it is damaged, put back a backup of it, and hfbench registry fsck tells what that lacks"
    return "is the server running, and are its name, user and password right?"
