"""The signs widgets paint with, in block characters or in plain ASCII."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["", "ok", "warn", "error", "unknown", "muted"]
"""What colour marks; each but the empty and the muted one also has a sign."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs, each one cell wide unless its name says otherwise."""

    full: str
    empty: str
    levels: str
    """Nine signs rising from nothing to a full cell."""
    ellipsis: str
    """Three cells in ASCII."""
    ascending: str
    descending: str
    cursor: str
    folded: str
    unfolded: str
    dot: str
    """Stands between facts on one line."""
    times: str
    rule: str
    ok: str = "ok"
    warn: str = "!"
    error: str = "x"
    unknown: str = "~"

    def sign(self, state: State) -> str:
        """The sign of a state; the empty and the muted state have none."""
        return {"ok": self.ok, "warn": self.warn, "error": self.error, "unknown": self.unknown}.get(state, "")

    def bar(self, fraction: float, width: int) -> str:
        """A bar of `width` cells; any progress shows a cell, and only the whole fills it."""
        share = min(1.0, max(0.0, fraction if fraction == fraction else 0.0))
        filled = round(share * width)
        if 0.0 < share < 1.0 and width > 1:
            filled = min(width - 1, max(1, filled))
        return self.full * filled + self.empty * (width - filled)


UNICODE = Glyphs(
    full="█",
    empty="░",
    levels=" ▁▂▃▄▅▆▇█",
    ellipsis="…",
    ascending="▲",
    descending="▼",
    cursor=">",
    folded="+",
    unfolded="-",
    dot="·",
    times="×",
    rule="─",
)
ASCII = Glyphs(
    full="#",
    empty=".",
    levels=" ._-=+*%#",
    ellipsis="...",
    ascending="^",
    descending="v",
    cursor=">",
    folded="+",
    unfolded="-",
    dot="|",
    times="x",
    rule="-",
)


def glyphs(ascii: bool) -> Glyphs:
    """The signs for a terminal that can, or cannot, show more than ASCII."""
    return ASCII if ascii else UNICODE


def glyphs_of(app: object) -> Glyphs:
    """The signs the application decided on; block characters when it decided nothing."""
    chosen = getattr(app, "glyphs", None)
    return chosen if isinstance(chosen, Glyphs) else UNICODE
