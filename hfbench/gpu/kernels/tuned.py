"""The file of tuned configurations: rows by key, the best of each key ready for a program to load.

{"schema": 1, "entries": {"softmax|3f9a...|3.9.0|9.0|bf16|C=8192,R=4096": {"key": {...}, "best": {...}, "rows": [...]}}}
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.directory import take_lock, write_json
from hfbench.paths import cache_root

SCHEMA = 1
PATIENCE = 30.0
"""Seconds to wait for another process that writes the file, which takes it milliseconds."""

LARGEST = 64 * 2**20
"""Bytes of a file of tuned configurations: some hundred thousand rows."""
ANOTHER = "name another file"
_OURS = re.compile(rb'\s*(\{\s*"schema"\s*:\s*\d+\s*,\s*"entries"\s*:|$)')
"""How a file begins that `save` wrote, however it ends; one that holds nothing is nobody's."""

RowVerdict = Literal["ok", "pruned", "inapplicable", "differs", "failed", "crash", "timeout"]


class DamagedTable(HfbenchError):
    """A file that cannot be read as tuned configurations; it is left as it is. `ours` when it once was such a file."""

    ours = False


@dataclass(frozen=True, kw_only=True)
class Key:
    """What a tuned configuration holds for. Anything else, and it must be tuned again."""

    kernel: str
    source: str
    """`source_hash` of the kernel's file."""
    triton: str
    capability: str
    """The full compute capability, such as `9.0`; `cpu` for rows that timed a reference there."""
    dtype: str
    bucket: str
    """`bucket_of` the sizes."""

    def __str__(self) -> str:
        return "|".join((self.kernel, self.source, self.triton, self.capability, self.dtype, self.bucket))


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A configuration as a launch takes it: constants by name, and the options of the compiler."""

    label: str
    constants: dict[str, Any]
    num_warps: int
    num_stages: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def meta(self) -> dict[str, Any]:
        """Keyword arguments of a launch: `fn[grid](..., **choice.meta)`."""
        return {**self.constants, "num_warps": self.num_warps, "num_stages": self.num_stages, **self.options}


@dataclass(frozen=True, kw_only=True)
class TunedRow:
    """What one configuration came to: figures in seconds a call, or the reason it has none."""

    choice: Choice
    shape: dict[str, int]
    """The size that was timed; others in its bucket are taken to behave alike."""
    bench: str
    """What was timed: `cuda` the kernel, `cpu` its reference in its place."""
    verdict: RowVerdict
    reason: str = ""
    seconds: float | None = None
    """Median of what is ranked by."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval of the median."""
    samples: int = 0
    ways: dict[str, float] = field(default_factory=dict)
    """Medians of all ways it was run, such as `cold`, `warm`, `cold graph`."""
    rank: str = "cold"
    """Which of the ways `seconds` is."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """All rows of one key, the quickest first."""

    key: Key
    best: Choice | None
    rows: list[TunedRow]


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """One key after tuning. `kept` rows were there before, `alike` have an interval that overlaps the best one's."""

    key: Key
    shape: dict[str, int]
    best: Choice | None
    rows: list[TunedRow]
    kept: int
    alike: list[str]


Table = Mapping[str, Entry]
"""Entries by the text of their key."""


def default_table() -> Path:
    """The file of rows where none is named."""
    return cache_root() / "kernels" / "tuned.json"


def load_tuned(path: Path) -> Table:
    """The entries of a file, none where there is no file; DamagedTable in a sentence when it is no such file.

    UsageError for a folder, a pipe or a device, HfbenchError for what cannot be read: nobody knows what those hold.
    """
    if (content := _content(path)) is None:
        return {}
    try:
        data = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise _damaged(path, content, "it is no text") from None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, content, f"it is no JSON ({str(error)[:80]})") from None
    if not isinstance(data, dict) or not isinstance(data.get("entries"), dict):
        raise _damaged(path, content, "it has no entries")
    if data.get("schema") != SCHEMA:
        raise _damaged(path, content, f"its schema is {data.get('schema')!r:.20}, {SCHEMA} is known here")
    try:
        return {name: decode(Entry, entry) for name, entry in data["entries"].items()}
    except (ValueError, TypeError) as error:
        raise _damaged(path, content, str(error)[:120]) from None


def best(table: Table, key: Key | str) -> Choice | None:
    """The quickest configuration for a key; None when nothing was tuned for it, or nothing worked."""
    entry = table.get(str(key))
    return entry.best if entry else None


def save(path: Path, key: Key, rows: Iterable[TunedRow]) -> Entry:
    """Put rows into the file, each in the place of an older one of its configuration; the entry as it is now.

    The file is read, changed and renamed into place under a lock beside it, so that two who tune lose nothing.
    DamagedTable when what is there cannot be read, HfbenchError when it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            table = dict(load_tuned(path))
            kept = {row.choice.label: row for row in table[str(key)].rows} if str(key) in table else {}
            kept |= {row.choice.label: row for row in rows}
            table[str(key)] = entry = _entry(key, kept.values())
            write_json(path, {"schema": SCHEMA, "entries": encode(table)})
    except OSError as error:
        raise HfbenchError(
            f"cannot be written: {error.strerror}", where=path, remedy="make it writable, or name another with out"
        ) from None
    return entry


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that a new one can begin and nothing is lost; the new name."""
    with _locked(path):
        number = 1
        while (name := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        path.rename(name)
    return name


def source_hash(digest: str, neighbours: Mapping[str, str]) -> str:
    """One hash of a kernel's file and the modules beside it: SHA-256 of their SHA-256s, wherever they lie."""
    if not neighbours:
        return digest
    return hashlib.sha256("\n".join([digest, *sorted(neighbours.values())]).encode()).hexdigest()


def bucket_of(shape: Mapping[str, int]) -> str:
    """`C=8192,R=4096`: every size rounded up to a power of two, axes by name; 0 stays 0.

    Sizes of (4096, 5000) and (3000, 8192) share a bucket, and (4097, 8192) is in another.
    """
    return ",".join(f"{axis}={1 << (size - 1).bit_length() if size > 0 else 0}" for axis, size in sorted(shape.items()))


def _entry(key: Key, rows: Iterable[TunedRow]) -> Entry:
    ordered = sorted(rows, key=lambda row: (row.verdict != "ok", row.seconds or 0.0, row.choice.label))
    first = ordered[0] if ordered and ordered[0].verdict == "ok" else None
    return Entry(key=key, best=first.choice if first else None, rows=ordered)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = path.with_name(f".{path.name}.lock")
    if (held := take_lock(lock, patience=PATIENCE)) is None:
        raise OSError(errno.EBUSY, f"another process has held {lock.name} for {PATIENCE:.0f} s")
    try:
        yield
    finally:
        os.close(held)


def _content(path: Path) -> bytes | None:
    """What a plain file holds; None when there is none."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError("is not a plain file", where=path, remedy=ANOTHER)
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise UsageError("is a folder", where=path, remedy=ANOTHER) from None
    except OSError as error:
        raise HfbenchError(f"cannot be read: {error.strerror}", where=path, remedy=ANOTHER) from None
    if len(content) > LARGEST:
        raise UsageError(f"holds more than {LARGEST:,} bytes", where=path, remedy=ANOTHER)
    return content


def _damaged(path: Path, content: bytes, why: str) -> DamagedTable:
    error = DamagedTable(
        f"is no file of tuned configurations: {why}", where=path, remedy="rename it, or name another file"
    )
    error.ours = _OURS.match(content) is not None or path == default_table()
    return error
