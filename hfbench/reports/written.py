"""Writes a report to the file, link or device that was named, and never takes the place of what is no file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from hfbench.errors import UsageError

STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


def write_report(out: Path, text: str, *, sources: Sequence[str]) -> None:
    """Write a text to what `out` is: a file whole or not at all, a link's target, a device or pipe as it stands.

    UsageError where it cannot be written, or is one of `sources`, what the report is about.
    """
    if any(out.exists() and Path(each).exists() and out.samefile(each) for each in sources):
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
        where, remedy = out, "name a file in a writable folder"
        raise UsageError(f"the report cannot be written: {error.strerror}", where=where, remedy=remedy) from None


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
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        if file.exists():
            shutil.copymode(file, beside)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
