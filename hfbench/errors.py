"""Errors a user can act on: one sentence, with its parts kept apart for JSON and screens."""

from __future__ import annotations

import errno
from collections.abc import Mapping

from hfbench.exits import Exit
from hfbench.pages import page_of
from hfbench.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would be a tenth of what `--help` costs
    from typing import ClassVar

FULL = (errno.ENOSPC, errno.EDQUOT)
LONGEST = 2000
"""Characters kept of a message that a library wrote."""


class HfbenchError(Exception):
    """Something the user can act on. `str()` is one sentence: where, what was found, what to do.

    Parts may hold names from files and hubs: they are escaped here, once, for every front end.
    """

    exit: ClassVar[Exit] = Exit.FAILED

    def __init__(self, found: str, *, where: object = "", remedy: str = "") -> None:
        self.found = printable(found).rstrip(".")
        self.where = printable(str(where))
        self.remedy = printable(remedy).rstrip(".")
        self._page = ""
        sentence = f"{self.where}: {self.found}" if self.where else self.found
        end = "" if sentence.endswith("?") else "."
        super().__init__(f"{sentence}{end} {begun(self.remedy)}" if self.remedy else sentence)

    @property
    def page(self) -> str:
        """The page of the documentation that tells more, of the room that raised it; empty where there is none."""
        return self._page or page_of(self)

    def parts(self) -> dict[str, str | int]:
        """The error as plain data for events and `--json`."""
        return {
            "error": type(self).__name__,
            "found": self.found,
            "where": self.where,
            "remedy": self.remedy,
            "exit": int(self.exit),
            **({"page": self.page} if self.page else {}),
        }


class UsageError(HfbenchError):
    """The request cannot be read: a wrong option, field, script or configuration."""

    exit = Exit.USAGE


class MissingError(HfbenchError):
    """Something needed is missing on this machine: a package, a tool, a device."""

    exit = Exit.ENVIRONMENT


class UnforeseenError(HfbenchError):
    """A fault of hfbench or of a library it called."""


class Interrupted(HfbenchError):
    """The user or the system asked to stop."""

    exit = Exit.INTERRUPTED


def error_from_parts(parts: Mapping[str, object]) -> HfbenchError:
    """Rebuild an error that crossed a process border as `parts()`; unknown kinds keep their exit code."""
    by_exit = {Exit.USAGE: UsageError, Exit.ENVIRONMENT: MissingError, Exit.INTERRUPTED: Interrupted}
    code = parts.get("exit")
    kind = by_exit.get(code, HfbenchError) if isinstance(code, int) else HfbenchError  # type: ignore[call-overload]
    error = kind(
        str(parts.get("found", "unknown error")), where=parts.get("where", ""), remedy=str(parts.get("remedy", ""))
    )
    error._page = printable(str(parts.get("page", "")))
    return error


def foreseen(error: Exception, *, traceback: str) -> HfbenchError:
    """A sentence for an error nobody raised on purpose; `traceback` says where the rest can be read."""
    if isinstance(error, HfbenchError):
        return error
    if isinstance(error, RecursionError):
        return UnforeseenError("something is nested too deeply", remedy=traceback)
    if isinstance(error, MemoryError):
        return HfbenchError("out of host memory", remedy="use a smaller batch, a smaller dtype or another machine")
    first = (str(error).strip() or "no message").splitlines()[0][:LONGEST]
    if type(error).__name__ == "OutOfMemoryError":  # torch's: named, because torch is not imported here
        return HfbenchError(f"out of device memory: {first}", remedy="use a smaller batch or dtype")
    if isinstance(error, OSError) and error.errno in FULL:
        found = f"a disk is full: {error.strerror}"
        return HfbenchError(found, where=error.filename or "", remedy="free some space and try again")
    if isinstance(error, OSError) and error.strerror:
        return HfbenchError(error.strerror, where=error.filename or "")
    return UnforeseenError(f"{type(error).__name__}: {first}", remedy=traceback)


def begun(remedy: str) -> str:
    """The remedy as the start of a sentence; a command stays as it is typed."""
    return remedy if remedy.startswith("hfbench ") else remedy[:1].upper() + remedy[1:]
