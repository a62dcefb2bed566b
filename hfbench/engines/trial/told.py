"""What a trial load came to, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["loaded", "refused", "crashed", "late", "could not"]
"""`late` and `could not` say nothing of the engine."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """A reason found in a log."""

    id: str
    found: str
    remedy: str
    fatal: bool = True
    """False for a warning, after which the engine may load all the same."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of trying to load an engine."""

    outcome: Outcome
    found: str
    """In a sentence."""
    remedy: str = ""
    reasons: tuple[Named, ...] = ()
    signal: str = ""
    """The signal that ended the process, if one did."""
    seconds: float = 0.0
    log: tuple[str, ...] = ()
    """The last lines the runtime wrote."""
