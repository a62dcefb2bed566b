"""How a line of the tensor table is written: its columns, and the text of its cells."""

from __future__ import annotations

from hfbench.text import printable
from hfbench.widgets.record_columns import Column, Placed, lay_out
from hfbench.widgets.tensor_order import Sort
from hfbench.widgets.tensor_rows import Line, TensorRows
from hfbench.widgets.tensor_widths import aligned_bytes, shape_text

NAME = Column("name", "Name", flexible=True, min=32, max=400, middle=True)
PATTERN = Column("name", "Pattern / Name", flexible=True, min=32, max=400, middle=True)
DTYPE = Column("dtype", "dtype", priority=1)
SHAPE = Column("shape", "shape", align="right", priority=2)
BYTES = Column("bytes", "bytes", align="right")
GROUP_BYTES = Column("bytes", "count x bytes", align="right")
TOTAL = Column("total", "total", align="right", priority=3)

SORTED_COLUMN = {Sort.NAME: "name", Sort.SIZE: "bytes"}


def columns_of(rows: TensorRows, width: int) -> tuple[Placed, ...]:
    """The columns that fit into `width` cells: dropped in the order total, shape, dtype."""
    widths = rows.widths
    if not rows.grouped:
        wanted = (widths.name, widths.dtype, widths.shape, widths.bytes)
        return lay_out((NAME, DTYPE, SHAPE, BYTES), wanted, width)
    counted = len(f"{rows.total:,}") + 3 + widths.bytes
    grouped = (widths.name + 2, widths.dtype, widths.shape, counted, widths.bytes)
    return lay_out((PATTERN, DTYPE, SHAPE, GROUP_BYTES, TOTAL), grouped, width)


def cell_texts(line: Line, *, times: str = "x") -> dict[str, str]:
    """The cells of a line by column key."""
    size = aligned_bytes(line.size)
    many = line.count > 1
    mark = "" if not many else "- " if line.unfolded else "+ "
    return {
        "name": ("  " if line.inside else mark) + printable(line.name),
        "dtype": printable(line.dtype),
        "shape": shape_text(line.shape),
        "bytes": f"{line.count:,} {times} {size}" if many else size,
        "total": aligned_bytes(line.size * line.count),
    }
