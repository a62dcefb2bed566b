"""Whole tensors divided among the ranks of a layout, or gathered into the stacks of torch_dist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from hfbench.convert.boxes import Box, Copy, Shape, TensorSpec, uncovered
from hfbench.convert.families.table import Row
from hfbench.convert.families.transforms import Piece, part_of, pieces_of
from hfbench.convert.megatron.destination import Names
from hfbench.convert.megatron.names import in_rank_file, in_torch_dist
from hfbench.convert.megatron.parallel import Parallel, Rank
from hfbench.convert.megatron.sizes import Sizes
from hfbench.convert.megatron.slots import EMBEDDING, OUTPUT, Slot
from hfbench.convert.plan import Fill, Target
from hfbench.models.dtypes import BITS

ITERATION = "release"
"""The folder of weights that belong to no training step: Megatron loads neither optimizer nor counters from it."""

RANK_FILE = "model_optim_rng.pt"
FILL: Fill = "zeros"
"""What rows hold that pad the vocabulary: their logits are 0, where copies of a token's row would compete with it."""

DIST_FILE_BYTES = 4 << 30
"""Of a .distcp file, so that several can be written at once; a tensor is never divided."""


@dataclass(frozen=True, slots=True)
class Item:
    """A slot with what makes it: the row, names of sources as they are called in the checkpoint, and the dtype."""

    slot: Slot
    row: Row
    sources: tuple[str, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A target, the item it belongs to, the name of the target it repeats when it is a copy, and how it is stacked."""

    target: Target
    item: Item
    repeats: str = ""
    stacked: int = 0
    """Leading dimensions that count layers and experts."""


class Geometry:
    """Pieces of rows by tensor-parallel rank, worked out once each: all layers and experts share them."""

    def __init__(self, sizes: Sizes, tp: int) -> None:
        self.sizes, self.tp = sizes, tp
        self._known: dict[tuple[int, int], tuple[Shape, tuple[Piece, ...], bool]] = {}

    def whole(self, row: Row) -> Shape:
        """The shape of a row's tensor before it is divided."""
        return self.sizes.shape(row.dimensions)

    def source_shapes(self, row: Row) -> tuple[Shape, ...]:
        """The shapes its sources must have."""
        shapes = row.transform.shapes(self.whole(row), self.sizes)
        return tuple((self.sizes.experts, *each) for each in shapes) if row.all_experts else shapes

    def part(self, row: Row, rank: int) -> tuple[Shape, tuple[Piece, ...], bool]:
        """Shape and pieces of what a rank holds, and whether rows of it are left to be filled."""
        key = (id(row), rank)
        if key not in self._known:
            whole = self.whole(row)
            shape, chunks = part_of(whole, row.split, self.tp, rank)
            pieces = pieces_of(row.transform.pieces(whole, self.sizes), chunks)
            left = uncovered(TensorSpec(row.target, "", shape), _as_copies(pieces))
            if left and not row.transform.pads:
                raise ValueError(f"{row.target}: {left} elements of {list(shape)} have no source")
            self._known[key] = shape, pieces, bool(left)
        return self._known[key]

    def copies(self, item: Item, pieces: Sequence[Piece], target: str, row: int = 0, column: int = 0) -> list[Copy]:
        """The pieces as copies between tensors, `row` and `column` further on in the target."""
        names = item.sources
        ahead = 0
        if item.row.all_experts and item.slot.expert is not None:
            [shape] = item.row.transform.shapes(self.whole(item.row), self.sizes)
            ahead = item.slot.expert * shape[0]
        return [
            Copy(
                names[each.source],
                _moved(each.source_box, ahead, 0),
                target,
                _moved(each.box, row, column),
                each.transposed,
            )
            for each in pieces
        ]


def rank_file(parallel: Parallel, rank: Rank) -> str:
    """The file of a rank, by its path in the output folder."""
    return f"{ITERATION}/{parallel.folder(rank)}/{RANK_FILE}"


def in_rank_files(
    items: Sequence[Item], parallel: Parallel, sizes: Sizes, *, names: Names, tied: bool
) -> Iterator[Placed]:
    """What every rank's file holds, layers and experts counted as the rank counts them."""
    geometry = Geometry(sizes, parallel.tp)
    stages = parallel.stages(sizes.layers)
    by_stage = [_of_stage(items, stages, stage, tied) for stage in range(parallel.pp)]
    for rank in parallel.ranks():
        folder = parallel.folder(rank)
        for item, target in by_stage[rank.pp]:
            slot = item.slot
            own = 0
            if slot.expert is not None:
                own, block = slot.expert % (each := sizes.experts // parallel.ep), slot.expert // each
                if block != rank.ep:
                    continue
            begin = 0 if slot.further else stages[rank.pp].start
            number = "" if slot.layer is None else str(slot.layer - begin)
            name = in_rank_file(target, names).replace("{n}", number).replace("{e}", str(own))
            shape, pieces, left = geometry.part(item.row, rank.tp)
            spec = TensorSpec(f"{folder}:{name}", item.dtype, shape)
            copies = tuple(geometry.copies(item, pieces, spec.name))
            words = _words(item.row, parallel.tp) if target == slot.target else f"copy of {slot.target}"
            made = Target(spec, rank_file(parallel, rank), copies, words, FILL if left else "")
            yield Placed(made, item, _repeated(item, target, rank, parallel, name))


def in_stacks(items: Sequence[Item], sizes: Sizes, *, names: Names, per_layer: bool) -> Iterator[Placed]:
    """torch_dist: whole tensors, those of all layers and experts one after another in a tensor of their own.

    `per_layer` keeps layers apart, for models whose layers are not all alike.
    """
    geometry = Geometry(sizes, 1)
    groups: dict[str, list[Item]] = {}
    for item in items:
        name = in_torch_dist(item.slot.target, names)
        if item.slot.layer is not None and (per_layer or item.slot.further):
            name = name.replace("{n}", str(item.slot.layer))
        groups.setdefault(name.replace("{n}.", ""), []).append(item)
    written = file = 0
    for name, group in groups.items():
        target = _stack(name, group, geometry, sizes, f"{ITERATION}/__0_{file}.distcp", per_layer)
        yield Placed(target, group[0], stacked=len(target.spec.shape) - len(group[0].row.dimensions))
        written += prod(target.spec.shape) * BITS.get(target.spec.dtype, 32) // 8
        if written > DIST_FILE_BYTES:
            written, file = 0, file + 1


def _stack(name: str, group: list[Item], geometry: Geometry, sizes: Sizes, file: str, per_layer: bool) -> Target:
    first = group[0]
    one, pieces, left = geometry.part(first.row, 0)
    layers = first.slot.layer is not None and not per_layer and not first.slot.further
    experts = first.slot.expert is not None
    shape = (*((sizes.layers,) if layers else ()), *((sizes.experts,) if experts else ()), *one)
    flat = len(one) == 1 and len(shape) > 1
    copies: list[Copy] = []
    for item in group:
        _, pieces, _ = geometry.part(item.row, 0)
        number = (item.slot.layer or 0) if layers else 0
        if experts:
            number = number * sizes.experts + (item.slot.expert or 0)
        if flat:
            pieces = tuple(_laid_flat(each) for each in pieces)
        copies += geometry.copies(item, pieces, name, row=number * (1 if flat else one[0]))
    words = first.row.transform.words + (", stack layers" if layers else "") + (", stack experts" if experts else "")
    return Target(TensorSpec(name, first.dtype, shape), file, tuple(copies), words, FILL if left else "")


def _of_stage(items: Sequence[Item], stages: tuple[range, ...], stage: int, tied: bool) -> list[tuple[Item, str]]:
    """The items of a stage with the names of their targets: embeddings first, the rest of the model last.

    The last of several stages has the embedding again: as its output layer where the two are tied, and for layers that
    predict further tokens.
    """
    found: list[tuple[Item, str]] = []
    last = stage == len(stages) - 1
    further = any(item.slot.further for item in items)
    for item in items:
        slot = item.slot
        if slot.layer is not None and not slot.further:
            if slot.layer in stages[stage]:
                found.append((item, slot.target))
        elif slot.target.startswith("embedding."):
            if not stage or (last and further):
                found.append((item, slot.target))
        elif last:
            found.append((item, slot.target))
    if last and stage and tied and not further:
        found += [(item, OUTPUT) for item in items if item.slot.target == EMBEDDING]
    return found


def _repeated(item: Item, target: str, rank: Rank, parallel: Parallel, name: str) -> str:
    """The target of the lowest rank that holds the same elements, empty for that one itself."""
    tp = 0 if item.row.split == "whole" else rank.tp
    ep = 0 if item.slot.expert is None else rank.ep
    stage = 0 if item.slot.target.startswith("embedding.") else rank.pp
    first = Rank(tp, stage, ep)
    if target != item.slot.target:
        name = item.slot.target
    return "" if first == rank else f"{parallel.folder(first)}:{name}"


def _words(row: Row, tp: int) -> str:
    """What is done to make a tensor, and how it is divided."""
    told = row.transform.words
    if tp == 1 or row.split == "whole":
        return told
    divided = {"rows": "chunk rows", "columns": "chunk columns", "halves": "chunk each half"}[row.split]
    return divided if told == "as it is" else f"{told}, {divided}"


def _moved(box: Box, row: int, column: int) -> Box:
    if not row and not column:
        return box
    return Box(box.row + row, box.row_end + row, box.column + column, box.column_end + column)


def _laid_flat(piece: Piece) -> Piece:
    """A piece of a vector as one of a row of a matrix."""
    box = piece.box
    return Piece(piece.source, piece.source_box, Box(0, 1, box.row, box.row_end), not piece.transposed)


def _as_copies(pieces: Sequence[Piece]) -> Iterator[Copy]:
    return (Copy("", each.source_box, "", each.box, each.transposed) for each in pieces)
