"""Named transforms: which elements of Hugging Face tensors are which elements of one Megatron tensor, whole.

Both directions read them: `shapes` says what the sources look like for a tensor of a given shape, `pieces` where their
elements lie in it. How the whole is divided among tensor-parallel ranks is a `Split`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from hfbench.convert.boxes import Box, Shape, cut_pair
from hfbench.convert.megatron.sizes import Sizes

Split = Literal["whole", "rows", "columns", "halves"]
"""What a rank gets: all of it, a chunk of rows or columns, or a chunk of each half of the rows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of source number `source` that is a box of the whole tensor."""

    source: int
    source_box: Box
    box: Box
    transposed: bool = False

    def turned(self) -> Piece:
        """The same elements of a source that lies the other way round."""
        here = self.source_box
        return Piece(self.source, Box(here.column, here.column_end, here.row, here.row_end), self.box, True)


@dataclass(frozen=True, slots=True, eq=False)
class Transform:
    """One way in which sources make up a whole. `words` tell it to people, `back` the way back."""

    words: str
    back: str
    shapes: Callable[[Shape, Sizes], tuple[Shape, ...]]
    pieces: Callable[[Shape, Sizes], tuple[Piece, ...]]
    pads: bool = False
    """Whether rows may be left that no source fills."""


def box_of(shape: Shape) -> Box:
    """All of a matrix or vector."""
    return Box(0, shape[0], 0, shape[1] if len(shape) > 1 else 1)


def _stacked(rows: tuple[int, ...], width: int) -> tuple[Piece, ...]:
    """Sources of so many rows, one below the other."""
    ends = list(accumulate(rows, initial=0))
    return tuple(
        Piece(number, Box(0, height, 0, width), Box(ends[number], ends[number] + height, 0, width))
        for number, height in enumerate(rows)
    )


def _width(shape: Shape) -> int:
    return shape[1] if len(shape) > 1 else 1


def _by_group(shape: Shape, sizes: Sizes, *, apart: bool) -> tuple[Piece, ...]:
    """Query, key and value rows of each key-value head together.

    With 4 heads, 2 key-value heads and one row a head, [q0 q1 q2 q3], [k0 k1] and [v0 v1] become
    [q0 q1 k0 v0 q2 q3 k1 v1]. `apart` when the three are sources of their own and not blocks of one.
    """
    width, one = _width(shape), sizes.head_dim
    queries = sizes.heads // sizes.groups * one
    begins = (0, 0, 0) if apart else (0, sizes.q_rows, sizes.q_rows + sizes.kv_rows)
    found, row = [], 0
    for group in range(sizes.groups):
        for place, height in enumerate((queries, one, one)):
            begin = begins[place] + group * height
            here = Box(begin, begin + height, 0, width)
            found.append(Piece(place if apart else 0, here, Box(row, row + height, 0, width)))
            row += height
    return tuple(found)


def _rows(shape: Shape, rows: int) -> Shape:
    return (rows, *shape[1:])


AS_IS = Transform(
    "as it is", "as it is", lambda shape, _: (shape,), lambda shape, _: (Piece(0, box_of(shape), box_of(shape)),)
)

TRANSPOSED = Transform(
    "transpose",
    "transpose",
    lambda shape, _: (shape[::-1],),
    lambda shape, _: (Piece(0, box_of(shape), box_of(shape)).turned(),),
)

PAD_VOCAB = Transform(
    "pad vocabulary",
    "cut to the vocabulary",
    lambda shape, sizes: (_rows(shape, sizes.vocab),),
    lambda shape, sizes: _stacked((sizes.vocab,), _width(shape)),
    pads=True,
)

FUSE_QKV = Transform(
    "fuse q, k, v by group",
    "take apart by group",
    lambda shape, sizes: tuple(_rows(shape, rows) for rows in (sizes.q_rows, sizes.kv_rows, sizes.kv_rows)),
    lambda shape, sizes: _by_group(shape, sizes, apart=True),
)

REGROUP_QKV = Transform(
    "regroup q, k, v by group",
    "gather q, k, v",
    lambda shape, _: (shape,),
    lambda shape, sizes: _by_group(shape, sizes, apart=False),
)

REGROUP_QKV_TRANSPOSED = Transform(
    "transpose, regroup q, k, v by group",
    "gather q, k, v, transpose",
    lambda shape, _: (shape[::-1],),
    lambda shape, sizes: tuple(piece.turned() for piece in _by_group(shape, sizes, apart=False)),
)

GATE_UP = Transform(
    "gate above up",
    "take gate and up apart",
    lambda shape, _: (_rows(shape, shape[0] // 2),) * 2,
    lambda shape, _: _stacked((shape[0] // 2,) * 2, _width(shape)),
)

GATE_UP_JOINED = Transform(
    "gate above up",
    "take gate and up apart",
    lambda shape, _: (shape,),
    lambda shape, _: (Piece(0, box_of(shape), box_of(shape)),),
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A box of the whole, and the row of the rank's own part on which it begins."""

    box: Box
    row: int = 0


def part_of(shape: Shape, split: Split, tp: int, rank: int) -> tuple[Shape, tuple[Chunk, ...]]:
    """The shape of what a tensor-parallel rank holds of a whole, and the chunks that make it up.

    ValueError when it does not divide evenly.
    """
    whole = box_of(shape)
    if split == "whole" or tp == 1:
        return shape, (Chunk(whole),)
    if (whole.width if split == "columns" else whole.height) % (2 * tp if split == "halves" else tp):
        raise ValueError(f"{list(shape)} does not divide into {tp} chunks of {split}")
    if split == "columns":
        width = whole.width // tp
        return (shape[0], width), (Chunk(Box(0, whole.height, rank * width, (rank + 1) * width)),)
    if split == "rows":
        height = whole.height // tp
        return (height, *shape[1:]), (Chunk(Box(rank * height, (rank + 1) * height, 0, whole.width)),)
    half = whole.height // 2
    height = half // tp
    begins = (rank * height, half + rank * height)
    chunks = tuple(
        Chunk(Box(begin, begin + height, 0, whole.width), row=place * height) for place, begin in enumerate(begins)
    )
    return (2 * height, *shape[1:]), chunks


def pieces_of(pieces: tuple[Piece, ...], chunks: tuple[Chunk, ...]) -> tuple[Piece, ...]:
    """The pieces that fall into the chunks, in the rows and columns of the rank's own part."""
    return tuple(cut for chunk in chunks for piece in pieces if (cut := _cut(piece, chunk)) is not None)


def _cut(piece: Piece, chunk: Chunk) -> Piece | None:
    parts = cut_pair(piece.source_box, piece.box, chunk.box, transposed=piece.transposed)
    if parts is None:
        return None
    source, whole = parts
    down, right = chunk.row - chunk.box.row, -chunk.box.column
    own = Box(whole.row + down, whole.row_end + down, whole.column + right, whole.column_end + right)
    return Piece(piece.source, source, own, piece.transposed)
