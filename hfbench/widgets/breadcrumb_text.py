"""The top line: where the user is, and on which machine."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.text import printable
from hfbench.widgets.cells import Span, clip, clip_middle, width_of
from hfbench.widgets.glyphs import Glyphs

NAME = "hfbench"
SEPARATOR = " > "


def breadcrumb(trail: Sequence[str], status: Sequence[str], width: int, glyphs: Glyphs) -> list[Span]:
    """`hfbench  Models > my-model > Overview        lab-3 · 1 job` in `width` cells.

    The last step of the trail is kept whole longest; then the status goes, first entry first; then middle steps
    are cut, and at last the name of the program.
    """
    steps = [printable(step) for step in trail]
    facts = [printable(fact) for fact in status if fact]
    joint = f" {glyphs.dot} "
    path = SEPARATOR.join(steps)
    while facts and len(NAME) + 2 + width_of(path) + 2 + width_of(joint.join(facts)) > width:
        facts.pop(0)
    room = width - len(NAME) - 2
    name = NAME + "  " if room >= 8 else "" if steps else clip(NAME, max(0, width), ellipsis=glyphs.ellipsis)
    path = _shortened(steps, width - len(name), glyphs)
    head, _, last = path.rpartition(SEPARATOR)
    right = joint.join(facts)
    spaces = width - len(name) - width_of(path) - width_of(right)
    return [
        (name, "accent"),
        (head + SEPARATOR if head else "", "muted"),
        (last, "title"),
        (" " * max(0, spaces), ""),
        (right, "muted"),
    ]


def _shortened(steps: list[str], width: int, glyphs: Glyphs) -> str:
    path = SEPARATOR.join(steps)
    if width_of(path) <= width or not steps:
        return path
    others = width_of(SEPARATOR) * (len(steps) - 1) + width_of(steps[-1])
    share = (width - others) // max(1, len(steps) - 1)
    if len(steps) > 1 and share >= 4:
        cut = [clip_middle(step, share, ellipsis=glyphs.ellipsis) for step in steps[:-1]]
        return SEPARATOR.join([*cut, steps[-1]])
    return clip_middle(steps[-1], max(0, width), ellipsis=glyphs.ellipsis)
