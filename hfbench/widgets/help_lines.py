"""The text of the help panel."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.widgets.cells import Span, width_of
from hfbench.widgets.facts_lines import wrapped
from hfbench.widgets.help import Help

WIDEST_KEYS = 20


def help_lines(help: Help, keys: Sequence[tuple[str, str, str]], width: int) -> list[list[Span]]:
    """Title, text, and the keys in force as (keys, what they do, where they work), in lines of `width` cells."""
    lines: list[list[Span]] = [[(help.title, "title")]]
    for paragraph in help.text.splitlines():
        lines += [_marked(line) for line in wrapped(paragraph, width)]
    column = min(WIDEST_KEYS, max((width_of(key) for key, _, _ in keys), default=0))
    place = ""
    for key, label, where in keys:
        if where != place:
            lines += [[("", "")], [(f"Keys {where}", "title")]]
            place = where
        room = max(8, width - column - 2)
        first, *rest = wrapped(label, room)
        lines.append([(key.ljust(column) + "  ", "key"), (first, "")])
        lines += [[(" " * (column + 2) + more, "")] for more in rest]
    return lines


def _marked(line: str) -> list[Span]:
    """Text between backticks is a key. The backticks stay away; a pair cut by a line end is plain text."""
    parts = line.split("`")
    if len(parts) % 2 == 0:
        return [(line.replace("`", ""), "")]
    return [(part, "key" if number % 2 else "") for number, part in enumerate(parts)]
