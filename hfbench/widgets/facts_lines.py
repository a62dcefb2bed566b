"""Facts as aligned lines of label and value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import chop_cells

from hfbench.text import printable
from hfbench.widgets.cells import Span, fit, width_of
from hfbench.widgets.glyphs import Glyphs, State

GAP = 2
WIDEST_LABEL = 30


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and what is known; a state adds its sign and colour."""

    label: str
    value: str
    state: State = ""


def facts_lines(facts: Sequence[Fact], width: int, glyphs: Glyphs) -> list[list[Span]]:
    """Lines of at most `width` cells. Values and labels too long for one line go on below, under their column."""
    labels = [printable(fact.label) for fact in facts]
    column = min(max(map(width_of, labels), default=0), WIDEST_LABEL, max(1, width // 2))
    room = max(1, width - column - GAP)
    lines: list[list[Span]] = []
    for label, fact in zip(labels, facts, strict=True):
        sign = glyphs.sign(fact.state)
        text = f"{sign} {printable(fact.value)}".rstrip() if sign else printable(fact.value)
        heads = _label_lines(label, column) if column else [""]  # never cut: labels may differ in their ends alone
        for head, part in zip_longest(heads, wrapped(text, room), fillvalue=""):
            lines.append([(fit(head, column, ellipsis=glyphs.ellipsis) + " " * GAP, "muted"), (part, fact.state)])
    return lines


def _label_lines(label: str, width: int) -> list[str]:
    """A label in lines of at most `width` cells, broken between words and behind dots where it can be."""
    lines: list[str] = []
    for text in wrapped(label, width) if " " in label else [label]:
        left = text
        while width_of(left) > width:
            part = chop_cells(left, width)[0]
            part = part[: part.rfind(".") + 1] or part
            lines.append(part)
            left = left[len(part) :]
        lines.append(left)
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """`text` broken between words into lines of at most `width` cells; a longer word is broken inside."""
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        joined = f"{current} {word}" if current else word
        if width_of(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        *full, current = chop_cells(word, width) or [""]
        lines += full
    return [*lines, current]
