"""Rectangles of tensors and the copies between them: what a conversion is made of, in either direction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, dtype in the spelling of safetensors (`BF16`), and shape, outermost first."""

    name: str
    dtype: str
    shape: Shape

    @property
    def rows(self) -> int:
        """Rows of the tensor seen as a matrix: all dimensions but the last; the elements of a vector are its rows."""
        return prod(self.shape[:-1]) if len(self.shape) > 1 else prod(self.shape)

    @property
    def columns(self) -> int:
        """Columns of that matrix; 1 for a vector."""
        return self.shape[-1] if len(self.shape) > 1 else 1


@dataclass(frozen=True, slots=True)
class Box:
    """Rows and columns of a tensor seen as a matrix (`TensorSpec.rows` x `TensorSpec.columns`), ends excluded."""

    row: int
    row_end: int
    column: int
    column_end: int

    @property
    def height(self) -> int:
        """Rows."""
        return self.row_end - self.row

    @property
    def width(self) -> int:
        """Columns."""
        return self.column_end - self.column


@dataclass(frozen=True, slots=True)
class Copy:
    """Elements of `source` that are those of `target`; `transposed` when rows of one are columns of the other.

    The same copies serve both directions: nothing is computed, only moved.
    """

    source: str
    source_box: Box
    target: str
    target_box: Box
    transposed: bool = False

    def __post_init__(self) -> None:
        """ValueError when the two boxes do not hold the same number of rows and columns."""
        here, there = self.source_box, self.target_box
        size = (here.width, here.height) if self.transposed else (here.height, here.width)
        if size != (there.height, there.width):
            raise ValueError(f"{self.source} {here} does not fill {self.target} {there}")

    def reversed(self) -> Copy:
        """The same elements moved back."""
        return Copy(self.target, self.target_box, self.source, self.source_box, self.transposed)

    def renamed(self, *, source: str | None = None, target: str | None = None) -> Copy:
        """The same elements under other names."""
        return replace(self, source=source or self.source, target=target or self.target)

    def cut(self, box: Box) -> Copy | None:
        """The part that falls into a box of the target, in the target's own rows and columns; None when none does."""
        parts = cut_pair(self.source_box, self.target_box, box, transposed=self.transposed)
        return replace(self, source_box=parts[0], target_box=parts[1]) if parts else None


def cut_pair(source: Box, target: Box, box: Box, *, transposed: bool) -> tuple[Box, Box] | None:
    """The part of two boxes with the same elements where `box` cuts the target's; None when it does not."""
    row, row_end = max(target.row, box.row), min(target.row_end, box.row_end)
    column, column_end = max(target.column, box.column), min(target.column_end, box.column_end)
    if row >= row_end or column >= column_end:
        return None
    down, across = (row - target.row, row_end - target.row), (column - target.column, column_end - target.column)
    if transposed:
        down, across = across, down
    cut = Box(source.row + down[0], source.row + down[1], source.column + across[0], source.column + across[1])
    return cut, Box(row, row_end, column, column_end)


def uncovered(spec: TensorSpec, copies: Iterable[Copy]) -> int:
    """Elements of a target that no copy writes. ValueError when two copies write the same element."""
    boxes = sorted((each.target_box for each in copies), key=lambda box: (box.row, box.column))
    open_boxes: list[Box] = []
    covered = 0
    for box in boxes:
        if box.row_end > spec.rows or box.column_end > spec.columns or min(box.row, box.column) < 0:
            raise ValueError(f"{spec.name}: {box} lies outside of {list(spec.shape)}")
        open_boxes = [each for each in open_boxes if each.row_end > box.row]
        if any(each.column < box.column_end and box.column < each.column_end for each in open_boxes):
            raise ValueError(f"{spec.name}: {box} is written twice")
        open_boxes.append(box)
        covered += box.height * box.width
    return spec.rows * spec.columns - covered
