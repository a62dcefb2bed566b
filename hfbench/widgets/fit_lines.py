"""A fit as painted lines: the keys with what they are set to, and the grid with its cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.actions.fit_text import COLUMN, FIRST_COLUMN, cell_text, context_label
from hfbench.estimate.facts import FitCell, FitReport
from hfbench.text import printable
from hfbench.widgets.cells import Span, clip, fit, width_of
from hfbench.widgets.glyphs import Glyphs

GAP = 3


@dataclass(frozen=True, slots=True)
class Knob:
    """A key, what it turns, and what that is set to."""

    key: str
    name: str
    value: str

    @property
    def width(self) -> int:
        """Cells of `k kv fp8`."""
        return width_of(self.key) + width_of(self.name) + width_of(printable(self.value)) + 2


def knob_lines(knobs: Sequence[Knob], width: int, glyphs: Glyphs) -> list[list[Span]]:
    """As many a line as fit; none is broken, and one that is too long by itself is cut."""
    lines: list[list[Span]] = []
    used = 0
    for knob in knobs:
        if not lines or used + GAP + knob.width > width:
            lines.append([])
            used = 0
        else:
            lines[-1].append((" " * GAP, ""))
            used += GAP
        head = width_of(knob.key) + width_of(knob.name) + 2
        value = clip(printable(knob.value), max(1, width - head), ellipsis=glyphs.ellipsis)
        lines[-1] += [(knob.key, "key"), (f" {knob.name} ", "muted"), (value, "")]
        used += knob.width
    return lines


def grid_spans(
    result: FitReport, cell: tuple[int | None, int], *, focused: bool, stale: bool, width: int, glyphs: Glyphs
) -> list[list[Span]]:
    """A title, the batches, and a line a context. A `stale` grid is of what was asked before."""
    if not result.grid:
        return []
    marked = cell[0] or result.context, cell[1]
    title = "GiB on a GPU by context and batch" + ("  counting ..." if stale else "")
    batches = "".join([f"{'batch':<{FIRST_COLUMN}}", *(f"{each.batch:<{COLUMN},}" for each in result.grid[0])])
    lines: list[list[Span]] = [[(clip(title, width, ellipsis=glyphs.ellipsis), "muted")], [(batches.rstrip(), "muted")]]
    for row in result.grid:
        label = context_label(row[0].context, result.context_limit)
        spans: list[Span] = []
        before, style, column = label, "warn" if label.endswith("!") else "muted", FIRST_COLUMN
        for each in row:
            here = (each.context, each.batch) == marked
            spans.append((fit(before, column - here), style))
            # The sign takes the last blank before its cell: colour alone shows nothing where there is none.
            before, column = f"{glyphs.cursor if here else ''}{cell_text(each)}", COLUMN + here
            style = _style(each, here=here, focused=focused, stale=stale)
            spans.append((before, style))
            before, style, column = "", "", column - width_of(before)
        lines.append(spans)
    return lines


def _style(cell: FitCell, *, here: bool, focused: bool, stale: bool) -> str:
    if here:
        return "cursor" if focused else "cursor-blurred"
    return "muted" if stale else "ok" if cell.fits else "error"
