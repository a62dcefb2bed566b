"""What a table of runtimes says of one of them; light to import, for declarations and screens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

State = Literal["ok", "warning", "error", "unknown"]
Launch = Literal["", "job", "command"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One runtime. `launch` says what its key starts: a form of an action with `values`, or a command to copy."""

    runtime: str
    title: str
    state: State
    reason: str
    version: str = ""
    """Of the rules the verdict goes by."""
    rules: str = ""
    """`installed`, or `shipped` with the day the table was read."""
    remote_code: bool = False
    precision: str = ""
    """What the card makes of the quantisation or the dtype; empty where there is nothing to say."""
    notes: tuple[str, ...] = ()
    launch: Launch = ""
    action: str = ""
    values: dict[str, str] = field(default_factory=dict)
