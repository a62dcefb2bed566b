"""Text cut and padded to terminal cells as the painter counts them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from hfbench.text import ELLIPSIS, after_number, before_number

Span = tuple[str, str]
"""Text and the name of its style: a state of glyphs.State, or title, cursor or key."""


def width_of(text: str) -> int:
    """Terminal cells `text` takes when painted."""
    return len(text) if text.isascii() else cell_len(text)


def clip(text: str, width: int, *, ellipsis: str = ELLIPSIS) -> str:
    """`text` cut at its end to at most `width` cells, with an ellipsis when something was cut."""
    if width_of(text) <= width:
        return text
    mark = ellipsis if width >= width_of(ellipsis) else ""
    room = max(0, width - width_of(mark))
    return (before_number(text, room) if text.isascii() else _exactly(text, room)).rstrip() + mark


def clip_middle(text: str, width: int, *, ellipsis: str = ELLIPSIS) -> str:
    """`text` cut in its middle to at most `width` cells: both ends of a tensor name or path matter."""
    if width_of(text) <= width:
        return text
    room = width - width_of(ellipsis)
    if room < 2:
        return clip(text, width, ellipsis=ellipsis)
    kept = room // 2
    while kept and width_of(text[-kept:]) > room // 2:
        kept -= 1
    tail = text[-kept:] if kept else ""
    if text.isascii():
        return before_number(text, room - kept) + ellipsis + after_number(text, len(text) - kept)
    joined = _exactly(text, room - width_of(tail)) + ellipsis + tail
    return joined if width_of(joined) <= width else _exactly(joined, width)


def clip_name(text: str, width: int, *, ellipsis: str = ELLIPSIS) -> str:
    """A dotted name cut to at most `width` cells so that its numbers and its end stay: they tell names of layers
    apart. `model.layers.3.mlp.w1` becomes `….3.….w1` where a cut in its middle would take the 3."""
    if width_of(text) <= width:
        return text
    cut = clip_middle(text, width, ellipsis=ellipsis)
    if _numbers(cut) == _numbers(text):
        return cut
    lead = text[: len(text) - len(text.lstrip(" +-"))]  # the sign of a group, or that of what stands below it
    parts = text[len(lead) :].split(".")
    for place, part in enumerate(parts[:-1]):
        if not _numbers(part):
            parts[place] = ""
            kept = [each for at, each in enumerate(parts) if each or not at or parts[at - 1]]
            shorter = lead + ".".join(each or ellipsis for each in kept)
            if width_of(shorter) <= width:
                return shorter
    return cut


def fit(text: str, width: int, *, right: bool = False, middle: bool = False, ellipsis: str = ELLIPSIS) -> str:
    """`text` clipped and padded to exactly `width` cells."""
    cut = (clip_middle if middle else clip)(text, width, ellipsis=ellipsis)
    padding = " " * (width - width_of(cut))
    return padding + cut if right else cut + padding


def spans_width(spans: Sequence[Span]) -> int:
    """Cells a line of spans takes."""
    return sum(width_of(text) for text, _ in spans)


def _numbers(name: str) -> list[str]:
    return [part for part in name.split(".") if part.isdecimal() or part == "*"]


def _exactly(text: str, width: int) -> str:
    return text[:width] if text.isascii() else set_cell_size(text, width)
