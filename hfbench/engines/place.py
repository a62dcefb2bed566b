"""The folder an engine is built in, beside the one it becomes: claimed by one process, and never under its name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hfbench.convert.stream.partial import OTHER_PLACE, emptied, locked, published
from hfbench.engines.manifest import engine_folder
from hfbench.errors import HfbenchError, UsageError

LOG = "build.log"


@contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """The hidden folder `.NAME.partial` beside an engine to be, empty, held and taken away unless it was renamed.

    What a build left there that was killed goes first. UsageError when another build holds it or its files are
    nobody's.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        descriptor = locked(partial, folder, by="build")
    except OSError as error:
        raise HfbenchError(f"cannot be made ({error.strerror})", where=partial, remedy=OTHER_PLACE) from None
    try:
        if any(partial.iterdir()) and not (partial / LOG).is_file():
            raise UsageError("holds files that no build put there", where=partial, remedy="move it away")
        emptied(partial)
        (partial / LOG).touch()
        try:
            yield partial
        finally:
            if _same(descriptor, partial):
                shutil.rmtree(partial, ignore_errors=True)
    finally:
        os.close(descriptor)


def refuse_taken(folder: Path, *, replace: bool) -> None:
    """UsageError when the place of an engine to be is not free; with `replace` another engine may stand there."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError("is not a folder", where=folder, remedy=OTHER_PLACE)
    if not folder.exists() or not any(folder.iterdir()):
        return
    if engine_folder(folder) == folder:
        if replace:
            _refuse_foreign(_aside(folder))
            return
        raise UsageError("holds an engine", where=folder, remedy=f"give --replace, or {OTHER_PLACE}")
    raise UsageError("holds other files and is left alone", where=folder, remedy=OTHER_PLACE)


def put(partial: Path, folder: Path) -> None:
    """Give the finished folder its name; an engine that stands there is moved aside first, and deleted last.

    A process killed between the two renames leaves both engines, the old one as `.NAME.replaced`.
    """
    aside, replacing = _aside(folder), folder.exists() and any(folder.iterdir())
    if replacing:
        _refuse_foreign(aside)
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(folder, aside)
    published(partial, folder)
    if replacing:
        shutil.rmtree(aside, ignore_errors=True)


def _aside(folder: Path) -> Path:
    """Where an engine waits until the one in its place is complete."""
    return folder.with_name(f".{folder.name}.replaced")


def _refuse_foreign(aside: Path) -> None:
    """UsageError for what stands where a replaced engine is put and is none."""
    if os.path.lexists(aside) and (aside.is_symlink() or engine_folder(aside) != aside):
        raise UsageError("stands where the old engine is to wait, and is none", where=aside, remedy="move it away")


def _same(descriptor: int, path: Path) -> bool:
    """Whether the folder held is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
