"""A folder that looks like a revision: small files whole, of safetensors the headers, of other weights their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from hfbench.models.files import kind_of
from hfbench.models.remote_mark import MARK, RemoteFile, RemoteMark, write_mark
from hfbench.models.safetensors import MAX_HEADER, PREFIX
from hfbench.registry.storage.reading import Plan, Reader
from hfbench.registry.storage.rebuilding import DamagedError
from hfbench.registry.xet.xorbs import XorbError
from hfbench.units import KIB, MIB

LARGEST = {
    "tokenizer": 128 * MIB,
    "index": 64 * MIB,
    "config": 4 * MIB,
    "code": MIB,
    "other": MIB,
    "weights": 64 * KIB,
}
"""Bytes up to which a file of a kind is copied; weights that are so small may be pointers to others."""
TEXTS = (".model", ".txt")
MOST_BYTES = 512 * MIB
"""Bytes of one folder: what is beyond is there by its name alone."""
PIECE = 4 * MIB


def make_shadow(folder: Path, name: str, plans: Mapping[str, Plan], reader: Reader) -> None:
    """Fill a folder with what the rules read of the files of a revision. Blocks."""
    marked: dict[str, RemoteFile] = {}
    left = MOST_BYTES
    for path, plan in _small_first(plans.items()):
        if path == MARK:
            continue
        is_header = path.lower().endswith(".safetensors") and plan.size > LARGEST["weights"]
        wanted = is_header or _is_small(path, plan.size)
        if not wanted or left <= 0:
            marked[path] = RemoteFile(plan.size, "nothing")
            continue
        try:
            left -= _copy(folder / path, plan, reader, header_only=is_header)
        except (DamagedError, XorbError, OSError):
            marked[path] = RemoteFile(plan.size, "nothing")  # fsck tells of it
            continue
        if is_header:
            marked[path] = RemoteFile(plan.size, "header")
    told = RemoteMark(reference=name, endpoint="", url="", repo=name, revision="", commit="", files=marked)
    write_mark(folder, told)


def _small_first(files: Iterable[tuple[str, Plan]]) -> list[tuple[str, Plan]]:
    return sorted(files, key=lambda each: (each[0].count("/"), each[1].size))


def _is_small(path: str, size: int) -> bool:
    kind = kind_of(path)
    return size <= LARGEST[kind] and (kind != "other" or path.endswith(TEXTS))


def _copy(target: Path, plan: Plan, reader: Reader, *, header_only: bool) -> int:
    """The beginning of a file, or all of it, at its place; bytes that were written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with reader.open(plan) as source, target.open("wb") as file:
        end = _header_end(source, plan.size) if header_only else plan.size
        done = 0
        while done < end and (data := source.read(min(PIECE, end - done))):
            file.write(data)
            done += len(data)
        file.truncate(plan.size)
    return done


def _header_end(source: BinaryIO, size: int) -> int:
    """Where the header of a safetensors file ends; for one that claims what it cannot have, where that is said."""
    length = int.from_bytes(source.read(PREFIX), "little")
    source.seek(0)
    return min(size, PREFIX + length if length <= MAX_HEADER else PREFIX)
