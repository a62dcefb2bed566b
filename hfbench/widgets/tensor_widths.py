"""How wide the columns of a tensor table must be, measured as rows arrive."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.models.columns import Shape, TensorColumns
from hfbench.text import printable
from hfbench.units import show_bytes
from hfbench.widgets.cells import width_of

LONGEST_SHAPE = 23
"""Cells of the shape column at most; a longer shape is told by its number of dimensions."""


@dataclass(slots=True)
class TensorWidths:
    """The widest cell of each column, in cells."""

    name: int = 0
    dtype: int = 0
    shape: int = 0
    bytes: int = 9
    _dtypes: int = 0
    _shapes: int = 0

    def extend(self, columns: TensorColumns, begin: int, end: int) -> bool:
        """Take in the rows from `begin` up to `end`; True when a column must be wider than before."""
        before = (self.name, self.dtype, self.shape, self.bytes)
        self.name = max(self.name, _widest(columns.names[begin:end]))
        self.bytes = max(self.bytes, len(aligned_bytes(max(columns.sizes[begin:end]))))
        dtypes, shapes = columns.dtypes[self._dtypes :], columns.shapes[self._shapes :]
        self.dtype = max(self.dtype, _widest(dtypes))
        self.shape = max(self.shape, max((len(shape_text(shape)) for shape in shapes), default=0))
        self._dtypes += len(dtypes)
        self._shapes += len(shapes)
        return before != (self.name, self.dtype, self.shape, self.bytes)


def shape_text(shape: Shape) -> str:
    """`7168x2048`; a scalar is `scalar`, and a shape too long to read is told by its rank."""
    text = "x".join(map(str, shape)) or "scalar"
    return text if len(text) <= LONGEST_SHAPE else f"{len(shape)} dims"


def aligned_bytes(count: int) -> str:
    """Bytes with the unit padded to three cells, so that units stand below each other."""
    number, unit = show_bytes(count).split()
    return f"{number} {unit:<3}"


def _widest(texts: list[str]) -> int:
    """Cells of the widest text once painted; plain texts, the rule, are only counted."""
    joined = "".join(texts)
    if joined.isascii() and joined.isprintable():
        return max(map(len, texts), default=0)
    return max(width_of(printable(text)) for text in texts)
