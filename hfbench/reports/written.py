"""Writes a report to the file, link or device that was named, and never takes the place of what is no file."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from hfbench.errors import UsageError
from hfbench.text import clip, printable

STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
KEPT_IN_FOLDERS = (
    *("request.json", "environment.json", "events.jsonl", "result.json", "output.log"),
    *("sweep.json", "sweep.hfb.yaml", "journal.jsonl", "results.jsonl"),
)
"""What hfbench writes into the folder of a job or a sweep."""
LONGEST = 120
"""Cells of a path that an error repeats."""
DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


def write_report(out: Path, text: str, *, sources: Sequence[Path]) -> None:
    """Write a text to what `out` is: a file whole or not at all, a link's target, a device or pipe as it stands.

    UsageError where it cannot be written, or is one of `sources`, what the report is about: files, and folders of jobs
    and sweeps, of which it may be none of hfbench's own files.
    """
    if any(_same(out, file) for each in sources for file in (each, *(each / name for name in KEPT_IN_FOLDERS))):
        raise UsageError("the report would overwrite what it is about", where=out, remedy="name another file")
    try:
        if (number := _descriptor(out)) is not None:
            with open(os.dup(number), "w", encoding="utf-8") as stream:
                stream.write(text)
        elif out.exists() and not out.is_file():
            with out.open("w", encoding="utf-8") as stream:
                stream.write(text)
        else:
            _rename_into(Path(os.path.realpath(out)), text)
    except OSError as error:
        if not out.is_absolute() and _folder_is_gone():
            found, remedy = "the current folder is gone", "change to a folder that exists"
        else:
            found, remedy = f"the report cannot be written: {error.strerror}", "name a file in a writable folder"
        raise UsageError(found, where=clip(printable(str(out)), LONGEST), remedy=remedy) from None
    except ValueError:
        raise UsageError("no file can have this name", where=out, remedy="name another file") from None


def _same(out: Path, file: Path) -> bool:
    """Whether two names are of one file that is there."""
    try:
        return os.path.samefile(out, file)
    except (OSError, ValueError):
        return False


def _folder_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def is_stdout(out: Path) -> bool:
    """Whether a path stands for the standard output, where a report goes by itself."""
    return _descriptor(out) == STREAMS["/dev/stdout"]


def is_file(out: Path) -> bool:
    """Whether what was written is a file that stays, and no stream or device."""
    return _descriptor(out) is None and out.is_file()


def _descriptor(out: Path) -> int | None:
    """The open stream a path stands for. Written through itself it goes on where it is, also behind `>>`."""
    found = DESCRIPTOR.fullmatch(str(out))
    return int(found[1]) if found else STREAMS.get(str(out))


def _rename_into(file: Path, text: str) -> None:
    """Write beside a regular or absent file and rename; a file that was there keeps its mode."""
    beside = file.with_name(f".report.{secrets.token_hex(6)}")  # a name may be as long as names can be
    try:
        beside.write_text(text, encoding="utf-8")
        if file.exists():
            shutil.copymode(file, beside)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
