"""The chooser of a conversion as painted lines: keys with what they are set to, and bars of what each rank holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.convert.plan_table import FileBytes
from hfbench.text import printable
from hfbench.units import show_bytes
from hfbench.widgets.cells import Span, clip, clip_middle, fit, width_of
from hfbench.widgets.facts_lines import wrapped
from hfbench.widgets.fit_lines import Knob
from hfbench.widgets.glyphs import Glyphs

MARK = 2
"""Cells before a key, where the cursor stands."""

BYTES = 9
"""Cells of a number of bytes."""

LEAST_BAR, WIDEST_BAR = 4, 30
RANK = "mp_rank_"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the chooser shows. `ranks` are empty while there is no plan; `stale` ones are of what was asked before."""

    head: str = ""
    knobs: tuple[Knob, ...] = ()
    ranks: tuple[FileBytes, ...] = ()
    title: str = ""
    """What stands above the bars."""
    reason: str = ""
    """What speaks for the layout."""
    stale: bool = False


def chooser_lines(
    choice: Choice, cursor: int, *, focused: bool, width: int, height: int, glyphs: Glyphs
) -> list[list[Span]]:
    """The family, a line a key, a blank line, and as many bars as `height` leaves room for."""
    lines: list[list[Span]] = [[(clip(printable(choice.head), width, ellipsis=glyphs.ellipsis), "muted")]]
    names = max((width_of(knob.name) for knob in choice.knobs), default=0)
    for number, knob in enumerate(choice.knobs):
        here = number == cursor
        mark = glyphs.cursor if here and focused else ""
        room = max(1, width - MARK - 2 - names - 2)
        value = clip_middle(printable(knob.value), room, ellipsis=glyphs.ellipsis)
        style = "cursor" if here and focused else ""
        lines.append([(mark.ljust(MARK), ""), (knob.key, "key"), (f" {knob.name:<{names}}  ", "muted"), (value, style)])
    told = wrapped(choice.reason, width) if choice.reason and len(lines) + 4 < height else []
    lines += [[(line, "muted")] for line in told]
    if choice.title and len(lines) + 2 <= height:
        lines += [[], [(clip(choice.title + ("  planning ..." if choice.stale else ""), width), "muted")]]
        lines += rank_lines(choice.ranks, width, height - len(lines), glyphs, stale=choice.stale)
    return lines


def rank_lines(
    ranks: Sequence[FileBytes], width: int, height: int, glyphs: Glyphs, *, stale: bool = False
) -> list[list[Span]]:
    """A bar a rank beside its bytes, the fullest rank's all full; those without room are counted."""
    if len(ranks) < 2 or height < 1:
        return []
    shown = ranks if len(ranks) <= height else ranks[: height - 1]
    most = max(rank.bytes for rank in ranks) or 1
    labels = [printable(rank.name.removeprefix(RANK)) for rank in shown]
    label = min(max(map(width_of, labels), default=0), max(6, width - BYTES - LEAST_BAR - 2))
    bar = min(WIDEST_BAR, width - label - BYTES - 2)
    lines: list[list[Span]] = []
    for name, rank in zip(labels, shown, strict=True):
        head = fit(name, label, middle=True, ellipsis=glyphs.ellipsis)
        blocks = glyphs.bar(rank.bytes / most, bar) if bar >= LEAST_BAR else ""
        figure = f"{show_bytes(rank.bytes):>{BYTES}}"
        lines.append([(f"{head} ", "muted"), (blocks, "muted" if stale else "accent"), (f" {figure}", "")])
    if len(shown) < len(ranks):
        lines.append([(f"and {len(ranks) - len(shown):,} more", "muted")])
    return lines
