"""Blocks put together from boxes are what numpy's slices say, whatever their size, and whatever the source is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.formats.joined import boxes_of_chunk, joined
from hfbench.convert.plan import Target
from hfbench.convert.stored import Stored, TensorSet
from hfbench.convert.stream import assemble as module
from hfbench.convert.stream.assemble import Assembly, Sources, assemble, read_box

KINDS = {"u1": "U8", "u2": "BF16", "u4": "F32", "u8": "I64"}


class Store:
    """Tensors in one file, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path, self.at = path, 0
        self.tensors: dict[str, Any] = {}
        path.write_bytes(b"")

    def put(self, name: str, values: Any) -> Stored:
        spec = TensorSpec(name, KINDS[values.dtype.str[1:]], values.shape)
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(values).tobytes())
        stored = self.tensors[name] = Stored(spec, self.path, self.at)
        self.at += values.nbytes
        return stored

    @property
    def set(self) -> TensorSet:
        return TensorSet(folder=self.path.parent, tensors=self.tensors)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data")


def drawn(seed: int, *shape: int, kind: str = "u2") -> Any:
    return np.random.default_rng(seed).integers(0, 200, shape).astype(kind)


def whole(target: Target, sources: TensorSet, step: int) -> Any:
    """All rows of a target, put together so many at a time."""
    with Sources(sources) as opened:
        parts = [
            assemble(target, row, min(row + step, target.spec.rows), opened) for row in range(0, target.spec.rows, step)
        ]
    kind = next(kind for kind, dtype in KINDS.items() if dtype == target.spec.dtype)
    return np.frombuffer(b"".join(parts), kind).reshape(target.spec.shape)


def copies_of(a: str, b: str, target: str) -> tuple[tuple[Copy, ...], Any]:
    """Rows 2-7 of A, below them columns 3-8 of B, beside those rows 1-6 of B's first four columns turned over."""
    copies = (
        Copy(a, Box(2, 7, 0, 9), target, Box(0, 5, 0, 9)),
        Copy(b, Box(1, 5, 3, 8), target, Box(5, 9, 0, 5)),
        Copy(b, Box(1, 5, 0, 4), target, Box(5, 9, 5, 9), transposed=True),
    )
    return copies, lambda A, B: np.vstack([A[2:7], np.hstack([B[1:5, 3:8], B[1:5, 0:4].T])])  # noqa: N803


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [1, 4, 9])
@pytest.mark.parametrize("scratch", [40, 1 << 20])
def test_a_target_is_what_slices_say(
    store: Store, monkeypatch: pytest.MonkeyPatch, kind: str, step: int, scratch: int
) -> None:
    monkeypatch.setattr(module, "SCRATCH_BYTES", scratch)
    a, b = drawn(1, 8, 9, kind=kind), drawn(2, 6, 8, kind=kind)
    store.put("a", a)
    store.put("b", b)
    copies, wanted = copies_of("a", "b", "t")
    target = Target(TensorSpec("t", KINDS[kind], (9, 9)), "", copies, "")
    assert (whole(target, store.set, step) == wanted(a, b)).all()


@pytest.mark.parametrize("run", [1, 1 << 20])
def test_narrow_columns_are_read_row_by_row_or_with_what_lies_between(
    store: Store, monkeypatch: pytest.MonkeyPatch, run: int
) -> None:
    monkeypatch.setattr(module, "LONG_RUN", run)
    a = drawn(3, 50, 64)
    store.put("a", a)
    for width in (2, 40):
        copy = Copy("a", Box(5, 45, 10, 10 + width), "t", Box(0, 40, 0, width))
        target = Target(TensorSpec("t", "BF16", (40, width)), "", (copy,), "")
        assert (whole(target, store.set, 7) == a[5:45, 10 : 10 + width]).all()


@pytest.mark.parametrize(
    ("offsets", "sizes"),
    [
        ((0, 0, 0), (3, 4, 5)),
        ((1, 0, 0), (2, 4, 5)),
        ((0, 2, 0), (3, 2, 5)),
        ((1, 1, 2), (2, 3, 3)),
        ((2, 3, 4), (1, 1, 1)),
    ],
)
def test_a_chunk_is_the_boxes_it_covers(offsets: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    numbers = np.arange(60).reshape(3, 4, 5)
    cut = numbers[tuple(slice(at, at + size) for at, size in zip(offsets, sizes, strict=True))]
    chunk, matrix = cut.reshape(-1, sizes[-1]), numbers.reshape(-1, 5)
    seen = 0
    for here, there in boxes_of_chunk((3, 4, 5), offsets, sizes):
        part = chunk[here.row : here.row_end, here.column : here.column_end]
        assert (part == matrix[there.row : there.row_end, there.column : there.column_end]).all()
        seen += part.size
    assert seen == cut.size


def test_a_tensor_in_chunks_is_read_through(store: Store) -> None:
    """Four chunks of a [2, 6, 8] tensor, cut in rows and in columns; a target takes a transposed box of it."""
    tensor = drawn(4, 2, 6, 8)
    chunks = [
        (
            (layer, row, column),
            store.put(f"{layer}{row}{column}", tensor[layer : layer + 1, row : row + 3, column : column + 4]),
        )
        for layer in range(2)
        for row in (0, 3)
        for column in (0, 4)
    ]
    source = joined(TensorSpec("t", "BF16", (2, 6, 8)), chunks)
    assert (
        np.frombuffer(read_box(source, Box(2, 11, 1, 7)), "u2").reshape(9, 6) == tensor.reshape(12, 8)[2:11, 1:7]
    ).all()
    copy = Copy("t", Box(1, 9, 2, 7), "x", Box(0, 5, 0, 8), transposed=True)
    target = Target(TensorSpec("x", "BF16", (5, 8)), "", (copy,), "")
    found = whole(target, TensorSet(folder=store.path.parent, tensors={"t": source}), 2)
    assert (found == tensor.reshape(12, 8)[1:9, 2:7].T).all()


@pytest.mark.parametrize(("fill", "last"), [("zeros", 0), ("last row", -1)])
@pytest.mark.parametrize("step", [1, 4, 10])
def test_rows_that_no_copy_writes_are_filled(store: Store, fill: Any, last: int, step: int) -> None:
    a = drawn(5, 7, 3) + 1
    store.put("a", a)
    copy = Copy("a", Box(0, 7, 0, 3), "t", Box(0, 7, 0, 3))
    target = Target(TensorSpec("t", "BF16", (10, 3)), "", (copy,), "", fill)
    found = whole(target, store.set, step)
    assert (found[:7] == a).all()
    assert (found[7:] == (a[-1] if last else 0)).all()


def test_decoded_sources_are_asked_for_boxes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In stretches of rows that fit into the scratch room."""
    monkeypatch.setattr(module, "SCRATCH_BYTES", 40)
    values, asked = drawn(6, 9, 10), list[Box]()

    class Decoded:
        spec = TensorSpec("d", "BF16", (9, 10))

        def read(self, box: Box) -> bytes:
            asked.append(box)
            return bytes(values[box.row : box.row_end, box.column : box.column_end].tobytes())

    copy = Copy("d", Box(1, 9, 0, 10), "t", Box(0, 8, 0, 10))
    target = Target(TensorSpec("t", "BF16", (8, 10)), "", (copy,), "")
    assert (whole(target, TensorSet(folder=store.path.parent, tensors={"d": Decoded()}), 8) == values[1:9]).all()
    assert max(box.height for box in asked) == 2


def test_packed_elements_are_moved_in_whole_rows_and_never_cut() -> None:
    """Two elements of F4 share a byte."""
    source = {"a": Stored(TensorSpec("a", "F4", (4, 6)), Path("x"), 0)}
    whole_rows = Copy("a", Box(1, 3, 0, 6), "t", Box(0, 2, 0, 6))
    assert Assembly(Target(TensorSpec("t", "F4", (2, 6)), "", (whole_rows,), ""), source).row_bytes == 3
    cut = Target(TensorSpec("t", "F4", (4, 2)), "", (Copy("a", Box(0, 4, 0, 2), "t", Box(0, 4, 0, 2)),), "")
    with (
        pytest.raises(ValueError, match="packed and cannot be cut"),
        Sources(TensorSet(folder=Path(), tensors={})) as s,
    ):
        Assembly(cut, source).fill(memoryview(bytearray(4)), 0, 4, s)


def test_a_cast_between_kinds_that_have_none_is_refused() -> None:
    source = {"a": Stored(TensorSpec("a", "F8_E4M3", (2, 2)), Path("x"), 0)}
    copy = Copy("a", Box(0, 2, 0, 2), "t", Box(0, 2, 0, 2))
    with pytest.raises(ValueError, match="F8_E4M3 is not cast to BF16"):
        Assembly(Target(TensorSpec("t", "BF16", (2, 2)), "", (copy,), ""), source)
