"""What a conversion is made from, as one number: the same plan over the same files goes on where it stopped."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hfbench.convert.formats.joined import Joined
from hfbench.convert.formats.layout import FileLayout
from hfbench.convert.plan import Target
from hfbench.convert.stored import Decoded, Stored, TensorSet
from hfbench.errors import HfbenchError

VERSION = 1
"""Raised whenever the same plan would be written as other bytes."""

State = tuple[str, int, int]
"""Name, bytes and time of change (ns) of a source file."""

Extra = Mapping[str, Path | bytes]
"""Small files beside the tensors: where each goes, and what is copied there or written."""


def fingerprint(
    targets: Sequence[Target], layouts: Sequence[FileLayout], extra: Extra, sources: Sequence[State], more: object = ""
) -> str:
    """The SHA-256 of all that decides what is written."""
    digest = hashlib.sha256(f"{VERSION}".encode())
    for part in (*targets, *(_layout(each) for each in layouts), *sources, more):
        digest.update(repr(part).encode("utf-8", "surrogatepass"))
    for name, content in sorted(extra.items()):
        told = state_of(content, content.name) if isinstance(content, Path) else hashlib.sha256(content).hexdigest()
        digest.update(repr((name, told)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def source_states(targets: Iterable[Target], sources: TensorSet) -> list[State]:
    """The files that the targets are made from, by name. HfbenchError when one is not there."""
    used = {name for target in targets for name in target.sources}
    files = {file for name in used for file in files_of(sources.tensors[name])}
    return [state_of(file, os.path.relpath(file, sources.folder)) for file in sorted(files)]


def files_of(source: Stored | Decoded) -> Iterator[Path]:
    """The files that a source lies in; a decoded one tells them as `files`."""
    if isinstance(source, Stored):
        yield source.file
    elif isinstance(source, Joined):
        yield from dict.fromkeys(part.file for part in source.parts.values())
    else:
        yield from getattr(source, "files", ())


def state_of(file: Path, name: str) -> State:
    """Size and time of change of a file."""
    try:
        status = file.stat()
    except OSError as error:
        raise HfbenchError(f"cannot be read ({error.strerror})", where=file) from None
    return name, status.st_size, status.st_mtime_ns


def _layout(layout: FileLayout) -> tuple[object, ...]:
    digest = hashlib.sha256()
    for at, data in layout.fixed:
        digest.update(at.to_bytes(8, "little"))
        digest.update(data)
    return layout.path, layout.size, layout.pieces, digest.hexdigest()
