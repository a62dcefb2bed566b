"""The folder a conversion works in, beside the one it will become: claimed by one process, kept for going on."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hfbench.convert.formats.layout import FileLayout
from hfbench.convert.stream.manifest import FINISHED, WORKING, finished_plan
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.problem import listed

OTHER_PLACE = "choose another folder with --out"


@contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """The hidden folder `.NAME.partial` beside a folder to be, held as long as the block lasts.

    UsageError when another conversion holds it or it holds files that no conversion put there.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        descriptor = locked(partial, folder, by="conversion")
    except OSError as error:
        raise HfbenchError(f"cannot be made ({error.strerror})", where=partial, remedy=OTHER_PLACE) from None
    try:
        names = {each.name for each in partial.iterdir()}
        if names and not names & {WORKING, f"{WORKING}.new", FINISHED}:
            raise UsageError("holds files that no conversion put there", where=partial, remedy="move it away")
        if any(each.is_symlink() for each in partial.rglob("*")):
            raise UsageError("holds links, which no conversion puts there", where=partial, remedy="move it away")
        yield partial
    finally:
        if partial.is_dir() and not any(partial.iterdir()):
            partial.rmdir()
        os.close(descriptor)


def refuse_taken(folder: Path, plan: str, layouts: Sequence[FileLayout]) -> bool:
    """True when the folder is this very conversion, complete. UsageError when it holds anything else."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError("is not a folder", where=folder, remedy=OTHER_PLACE)
    if not folder.exists() or not any(folder.iterdir()):
        return False
    if is_complete(folder, plan, layouts):
        return True
    if finished_plan(folder):
        found = "holds another conversion, or this one of files that have changed since"
        raise UsageError(found, where=folder, remedy=f"delete it, or {OTHER_PLACE}")
    raise UsageError("holds other files and is left alone", where=folder, remedy=OTHER_PLACE)


def refuse_strangers(partial: Path, ours: Collection[str]) -> None:
    """UsageError for a file, by its path in the folder, that is neither among `ours` nor a manifest of conversions."""
    ours = {*ours, WORKING, f"{WORKING}.new", FINISHED, f"{FINISHED}.new"}
    files = (each.relative_to(partial).as_posix() for each in partial.rglob("*") if not each.is_dir())
    if strange := sorted(each for each in files if each not in ours):
        found = f"holds {listed(strange)}, which no conversion put there"
        raise UsageError(found, where=partial, remedy="move it away, and the same command goes on")


def is_complete(folder: Path, plan: str, layouts: Sequence[FileLayout]) -> bool:
    """Whether a folder is what a conversion by this plan made, by its manifest and the sizes of its files."""
    if (folder / WORKING).exists() or finished_plan(folder) != plan:
        return False
    return all(_size(folder / layout.path) == layout.size for layout in layouts)


def refuse_same(folder: Path, sources: Path) -> None:
    """UsageError when the output would be the source, or a folder around it."""
    real, source = Path(os.path.realpath(folder)), Path(os.path.realpath(sources))
    if real == source or source.is_relative_to(real):
        raise UsageError("is where the source is", where=folder, remedy=OTHER_PLACE)


def emptied(partial: Path) -> None:
    """Take away what an earlier conversion left in its folder."""
    for each in partial.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


def published(partial: Path, folder: Path) -> None:
    """Give the finished folder its name; a folder of that name may be there when it is empty."""
    os.rename(partial, folder)
    synced(folder.parent)


def locked(partial: Path, folder: Path, *, by: str) -> int:
    """A descriptor of the folder with its lock, which ends with the process and leaves no file.

    UsageError when another process holds it; `by` is what it would be doing, in a word.
    """
    partial.parent.mkdir(parents=True, exist_ok=True)
    while True:
        partial.mkdir(exist_ok=True)
        descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            found = f"is being written by another {by}"
            raise UsageError(found, where=folder, remedy=f"wait for it, or {OTHER_PLACE}") from None
        if _same(descriptor, partial):
            return descriptor
        os.close(descriptor)  # it got its name, or was taken away, before it was ours


def synced(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def allocated(partial: Path) -> int:
    """Bytes on the disk that the files of a folder take by now."""
    return sum(each.lstat().st_blocks * 512 for each in partial.rglob("*"))


def _same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
