"""Which keys the key line names at a width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hfbench.widgets.cells import width_of

GAP = 2


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is written, and what it does in a word or two."""

    key: str
    label: str

    @property
    def width(self) -> int:
        """Cells of `key label`."""
        return width_of(self.key) + 1 + width_of(self.label)


HELP, QUIT = Key("?", "help"), Key("q", "quit")
TAIL = (HELP, QUIT)
"""What stands at the end of the line unless the user's key map moved it."""

MORE = "more"
"""What help is called where it names keys that the line had no room for."""


def fit_keys(keys: Sequence[Key], width: int, tail: Sequence[Key] = TAIL) -> list[Key]:
    """The keys that fit, most important first, then the tail; none is ever cut.

    A key that does not fit is passed over for shorter ones behind it, and `? help` becomes `? more`: there it is
    found. The tail itself loses its end last.
    """
    last: list[Key] = []
    used = -GAP
    for key in tail:
        if used + GAP + key.width <= width:
            last.append(key)
            used += GAP + key.width
    kept: list[Key] = []
    wanted = [key for key in keys if key not in tail]
    for key in wanted:
        if used + GAP + key.width <= width:
            kept.append(key)
            used += GAP + key.width
    if len(kept) < len(wanted):
        last = [replace(key, label=MORE) if key.label == HELP.label else key for key in last]
    return kept + last
