"""A folder that appears under its name when it is complete, and can tell later that it still is."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError, UsageError

MANIFEST = "hfbench-manifest.json"
SCHEMA_VERSION = 1


def make_folder(target: Path, origin: Mapping[str, str], build: Callable[[Path], object]) -> bool:
    """Have `build` fill a folder beside `target` and rename it there; True when a complete one was there already.

    `origin` says what it is made from: another origin, or any changed byte, makes it again. Nothing stands under
    the final name until all is written. UsageError when `target` holds files that hfbench did not put there.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _held(target.parent):
            if is_complete(target, origin):
                return True
            _refuse_foreign(target)
            _build_beside(target, origin, build)
    except OSError as error:
        place = error.filename or target
        raise HfbenchError(
            f"cannot be written: {error.strerror or error}", where=place, remedy="free space or choose another folder"
        ) from error
    return False


def is_complete(folder: Path, origin: Mapping[str, str]) -> bool:
    """Whether the folder was made from `origin` and every file still has its size and SHA-256."""
    manifest = _manifest(folder)
    if manifest is None or manifest.get("origin") != dict(origin) or not isinstance(manifest.get("files"), dict):
        return False
    try:
        return all(_facts(folder / name) == facts for name, facts in manifest["files"].items())
    except OSError:
        return False


def _build_beside(target: Path, origin: Mapping[str, str], build: Callable[[Path], object]) -> None:
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed: we hold the lock
    partial.mkdir()
    try:
        build(partial)
        files = {each.name: _facts(each) for each in sorted(partial.iterdir())}
        manifest = {"version": SCHEMA_VERSION, "origin": dict(origin), "files": files}
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _refuse_foreign(target: Path) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError("is not a folder", where=target, remedy="choose another place with --out")
    if target.exists() and any(target.iterdir()) and _manifest(target) is None:
        raise UsageError("holds other files and is left alone", where=target, remedy="choose another place with --out")


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _facts(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, which leaves no file behind and ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
