"""Rows of a target put together from boxes of its sources, in blocks of bounded size."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.formats.joined import Joined, RowIndex
from hfbench.convert.formats.layout import row_bytes
from hfbench.convert.plan import Target
from hfbench.convert.stored import Decoded, Stored, TensorSet
from hfbench.convert.stream.cast import BITS_NAMES, cast, castable
from hfbench.errors import HfbenchError
from hfbench.models.dtypes import BITS
from hfbench.models.files import open_regular
from hfbench.models.problem import quoted
from hfbench.models.values.decode import Array, load_numpy

SCRATCH_BYTES = 1 << 20
"""Of a source that is read at once where its elements have to be moved: it stays in the cache."""

LONG_RUN = 32 << 10
"""Bytes of a row from which on each is read by itself; shorter ones are read with what lies between them."""

MOST_WASTE = 8
"""Times the bytes wanted that are read at once: beyond it, each row is read by itself."""

MOST_OPEN = 16
"""Files kept open a thread."""

Source = Stored | Decoded


class Sources:
    """Reads stretches of a set's files; keeps some open until it is left. One thread may use it."""

    def __init__(self, tensors: TensorSet) -> None:
        self.set = tensors
        self.np = load_numpy()
        self.files: dict[Path, BinaryIO] = {}
        self.scratch = bytearray(SCRATCH_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self.files.values():
            file.close()
        self.files.clear()

    def fill(self, room: memoryview, file: Path, at: int) -> None:
        """Fill the room with a file's bytes from `at` on. HfbenchError when it does not give so many."""
        try:
            descriptor = self._file(file).fileno()
            while room:
                got = os.preadv(descriptor, [room], at)
                if not got:
                    found = "ends before its last tensor"
                    raise HfbenchError(found, where=file, remedy="it was cut or changed: fetch it again")
                room, at = room[got:], at + got
        except OSError as error:
            raise HfbenchError(f"cannot be read ({error.strerror})", where=file) from None

    def read(self, source: Source, box: Box) -> bytearray:
        """The elements of a box of any source, row after row without holes."""
        return read_box(source, box, self)

    def room(self, size: int) -> memoryview:
        """Scratch room; what was in it before is lost."""
        if size > len(self.scratch):
            self.scratch = bytearray(size)
        return memoryview(self.scratch)[:size]

    def _file(self, path: Path) -> BinaryIO:
        if path not in self.files:
            if len(self.files) == MOST_OPEN:
                self.files.pop(next(iter(self.files))).close()
            file = open_regular(path, self.set.folder if path.is_relative_to(self.set.folder) else None)
            self.files[path] = file
            with suppress(OSError):  # from a cold cache, half as much again
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        return self.files[path]


class Assembly:
    """How one target is put together: its copies by row, down to what lies in files."""

    def __init__(self, target: Target, tensors: Mapping[str, Source]) -> None:
        """ValueError when a source is missing or of a dtype that is not cast to the target's."""
        self.target, self.spec = target, target.spec
        self.row_bytes = row_bytes(target.spec)
        pairs = list(flattened(target.copies, tensors))
        for _, source in pairs:
            have, want = source.spec.dtype, self.spec.dtype
            if have != want and not castable(have, want):
                raise ValueError(f"{self.spec.name}: {have} is not cast to {want}")
        self.index = RowIndex([copy for copy, _ in pairs])
        self.sources = [pairs[number][1] for number in self.index.order]

    def fill(self, room: memoryview, row: int, row_end: int, sources: Sources) -> None:
        """Put the rows into the room, which has exactly their size."""
        spec = self.spec
        if self.target.fill:
            room[:] = bytes(len(room))
        block = Box(row, row_end, 0, spec.columns)
        for place in self.index.touching(row, row_end):
            copy = self.index.copies[place].cut(block)
            if copy is not None:
                self._move(room, row, copy, self.sources[place], sources)
        if self.target.fill == "last row":
            self._repeat(room, row, row_end, sources)

    def _move(self, room: memoryview, row: int, copy: Copy, source: Source, sources: Sources) -> None:
        box, width = copy.target_box, self.spec.columns
        same = source.spec.dtype == self.spec.dtype and not copy.transposed and box.width == width
        if same and isinstance(source, Stored) and copy.source_box.width == source.spec.columns:
            begin, size = (box.row - row) * self.row_bytes, box.height * self.row_bytes
            at = source.begin + copy.source_box.row * self.row_bytes
            sources.fill(room[begin : begin + size], source.file, at)
            return
        out = sources.np.frombuffer(room, bits_name(self.spec)).reshape(-1, width)
        for offset, values in boxes_read(source, copy.source_box, sources):
            moved = cast(values, source.spec.dtype, self.spec.dtype)
            if copy.transposed:
                column = box.column + offset
                out[box.row - row : box.row_end - row, column : column + len(values)] = moved.T
            else:
                first = box.row - row + offset
                out[first : first + len(values), box.column : box.column_end] = moved

    def _repeat(self, room: memoryview, row: int, row_end: int, sources: Sources) -> None:
        """Give the rows behind the last that a copy writes the elements of that one."""
        last = max((copy.target_box.row_end for copy in self.index.copies), default=0)
        if not last:
            raise ValueError(f"{self.spec.name}: no row is there to be repeated")
        if row_end <= last:
            return
        repeated = bytearray(self.row_bytes)
        for place in self.index.touching(last - 1, last):
            copy = self.index.copies[place].cut(Box(last - 1, last, 0, self.spec.columns))
            if copy is not None:
                self._move(memoryview(repeated), last - 1, copy, self.sources[place], sources)
        for place in range(max(last, row), row_end):
            room[(place - row) * self.row_bytes : (place - row + 1) * self.row_bytes] = repeated


def assemble(target: Target, row: int, row_end: int, sources: Sources) -> bytearray:
    """Rows `row` to `row_end` of a target as they will stand in its file; for many of them keep an `Assembly`."""
    found = bytearray((row_end - row) * row_bytes(target.spec))
    Assembly(target, sources.set.tensors).fill(memoryview(found), row, row_end, sources)
    return found


def read_box(source: Source, box: Box, sources: Sources | None = None) -> bytearray:
    """The elements of a box, row after row without holes, whatever the source is."""
    if sources is None:
        with Sources(TensorSet(folder=Path(), tensors={})) as opened:
            return read_box(source, box, opened)
    spec = TensorSpec("", source.spec.dtype, (box.height, box.width))
    target = Target(spec, "", (Copy("", box, "", Box(0, box.height, 0, box.width)),), "")
    found = bytearray(box.height * row_bytes(spec))
    Assembly(target, {"": source}).fill(memoryview(found), 0, box.height, sources)
    return found


def flattened(copies: Iterable[Copy], tensors: Mapping[str, Source]) -> Iterator[tuple[Copy, Source]]:
    """The copies with what they read from, those from a joined tensor as copies from its parts."""
    for copy in copies:
        source = tensors.get(copy.source)
        if source is None:
            raise ValueError(f"{copy.target}: there is no source {quoted(copy.source)}")
        if not isinstance(source, Joined):
            yield copy, source
            continue
        index = source.index
        for place in index.touching(copy.source_box.row, copy.source_box.row_end):
            part = index.copies[place].cut(copy.source_box)
            if part is not None:
                yield _through(part, copy), source.parts[part.source]


def boxes_read(source: Source, box: Box, sources: Sources) -> Iterator[tuple[int, Array]]:
    """The rows of a box in stretches of bounded size: the first row's number within the box, and the bits."""
    spec, height, width = source.spec, box.height, box.width
    item = BITS[spec.dtype] // 8
    name = bits_name(spec)
    if not height or not width:
        return
    if not isinstance(source, Stored):
        step = max(1, SCRATCH_BYTES // (width * item))
        for first in range(0, height, step):
            end = min(first + step, height)
            raw = source.read(Box(box.row + first, box.row + end, box.column, box.column_end))
            yield first, sources.np.frombuffer(raw, name).reshape(end - first, width)
        return
    stride, run = spec.columns * item, width * item
    apart = stride != run and (run >= LONG_RUN or stride > MOST_WASTE * run)
    step = max(1, SCRATCH_BYTES // (run if apart else stride))
    for first in range(0, height, step):
        count = min(step, height - first)
        at = source.begin + (box.row + first) * stride + box.column * item
        if apart:
            room = sources.room(count * run)
            for row in range(count):
                sources.fill(room[row * run : (row + 1) * run], source.file, at + row * stride)
            yield first, sources.np.frombuffer(room, name).reshape(count, width)
        else:
            room = sources.room(count * stride)
            sources.fill(room[: (count - 1) * stride + run], source.file, at)
            yield first, sources.np.frombuffer(room, name).reshape(count, -1)[:, :width]


def bits_name(spec: TensorSpec) -> str:
    """numpy's name of the elements' bits. ValueError for packed dtypes, whose rows are only moved whole."""
    if BITS[spec.dtype] % 8:
        raise ValueError(f"{spec.name}: elements of {spec.dtype} are packed and cannot be cut")
    return BITS_NAMES[BITS[spec.dtype] // 8]


def _through(part: Copy, copy: Copy) -> Copy:
    """A copy from a part to the joined tensor, which lies in the copy's box of it, carried on to the copy's target."""
    onward = copy.reversed().cut(part.target_box)
    assert onward is not None, "the part was cut to the copy's box"
    box = onward.source_box
    return Copy(part.source, part.source_box, copy.target, box, part.transposed != copy.transposed)
