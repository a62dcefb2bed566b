"""The pieces a conversion has to write: each with its place, and the order they are best written in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from hfbench.convert.boxes import uncovered
from hfbench.convert.formats.joined import Joined, RowIndex
from hfbench.convert.formats.layout import FileLayout, row_bytes
from hfbench.convert.plan import Target
from hfbench.convert.stored import Stored, TensorSet
from hfbench.convert.stream.manifest import FINISHED, WORKING
from hfbench.convert.stream.write import Work


def pieces_of(targets: Sequence[Target], layouts: Sequence[FileLayout], sources: TensorSet) -> list[Work]:
    """Every piece to write. ValueError when a target has no place, or elements that nothing writes."""
    by_name = {target.spec.name: target for target in targets}
    if len(by_name) != len(targets):
        raise ValueError("two targets have one name")
    rows = dict.fromkeys(by_name, 0)
    work: list[Work] = []
    for layout in layouts:
        for piece in layout.pieces:
            rows[piece.target] += piece.row_end - piece.row
            work.append(Work(len(work), by_name[piece.target], piece, layout.path))
    for target in targets:
        spec = target.spec
        if rows[spec.name] != spec.rows:
            raise ValueError(f"{spec.name}: {rows[spec.name]} of {spec.rows} rows have a place")
        if uncovered(spec, target.copies) and not target.fill:
            raise ValueError(f"{spec.name}: elements that nothing writes")
        missing = [name for name in target.sources if name not in sources.tensors]
        if missing:
            raise ValueError(f"{spec.name}: there is no source {missing[0]!r}")
    return work


def in_order(work: Sequence[Work], sources: TensorSet, threads: int) -> list[Work]:
    """The largest pieces first, so that none is left alone in the end; the others as their sources lie on the disk."""
    large = sum(each.bytes for each in work) / (4 * threads)

    indices: dict[str, RowIndex] = {}

    def place(each: Work) -> tuple[int, str, int, int]:
        if each.bytes >= large:
            return -each.bytes, "", 0, each.number
        target = each.target
        index = indices.get(target.spec.name) or indices.setdefault(target.spec.name, RowIndex(target.copies))
        copy = next((index.copies[at] for at in index.touching(each.piece.row, each.piece.row_end)), None)
        source = sources.tensors[copy.source] if copy else None
        if isinstance(source, Joined):
            source = next(iter(source.parts.values()))
        if not isinstance(source, Stored) or copy is None:
            return 0, "", 0, each.number
        return 0, str(source.file), source.begin + copy.source_box.row * row_bytes(source.spec), each.number

    return sorted(work, key=place)


def check_paths(paths: Iterable[str]) -> None:
    """ValueError for a path that leads out of the output folder or is taken twice."""
    seen: set[str] = set()
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or path in (WORKING, FINISHED) or path in seen:
            raise ValueError(f"{path!r} is no path for a file, or taken twice")
        seen.add(path)
