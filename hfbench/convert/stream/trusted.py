"""What a conversion that had stopped left behind, as far as it is believed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hfbench.convert.formats.layout import FileLayout
from hfbench.convert.stream.manifest import boot_id
from hfbench.convert.stream.outputs import BLOCK_BYTES
from hfbench.convert.stream.write import Landed, Work
from hfbench.jobs.run import Run


def trusted(
    partial: Path,
    header: Mapping[str, object],
    landed: Iterable[Landed],
    work: Sequence[Work],
    layouts: Iterable[FileLayout],
    run: Run,
) -> dict[int, Landed]:
    """The pieces that have landed and still are there, by number.

    After a restart of the machine every piece is read again and compared, told as the phase `check`.
    """
    whole = {each.path for each in layouts if _size(partial / each.path) == each.size}
    found = {each.number: each for each in landed if 0 <= each.number < len(work) and work[each.number].path in whole}
    if header.get("boot") == boot_id():
        return found
    total, done = sum(work[number].bytes for number in found), 0
    kept: dict[int, Landed] = {}
    for number, each in found.items():
        piece = work[number]
        if sha256_of(partial / piece.path, piece.piece.begin, piece.bytes) == each.sha256:
            kept[number] = each
        done += piece.bytes
        run.progress("check", done, total, "B")
    return kept


def sha256_of(path: Path, begin: int, size: int) -> str:
    """Of bytes of a file."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        file.seek(begin)
        while size and (block := file.read(min(size, BLOCK_BYTES))):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
