"""The phases of a job on one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hfbench.text import printable
from hfbench.units import show_elapsed
from hfbench.widgets.cells import Span, clip, spans_width
from hfbench.widgets.glyphs import Glyphs, State

GAP = "   "
WIDEST_BAR, LEAST_BAR = 20, 4

PhaseState = Literal["waiting", "running", "done", "failed", "skipped"]

_SIGNS: dict[PhaseState, tuple[str, State]] = {
    "waiting": ("", "muted"),
    "running": ("", ""),
    "done": ("ok", "ok"),
    "failed": ("x", "error"),
    "skipped": ("skipped", "muted"),
}


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: `fraction` of 0 to 1 when it is known, `remaining` seconds when they can be told, else `elapsed`."""

    name: str
    state: PhaseState = "waiting"
    fraction: float | None = None
    remaining: float | None = None
    elapsed: float | None = None


def phases_line(phases: Sequence[Phase], width: int, glyphs: Glyphs) -> list[Span]:
    """`verify ok   measure ########------ 57%   ~40 s left` in `width` cells.

    Narrow lines shorten the bar, then drop waiting phases, finished ones, and the remaining time; never digits.
    """
    kept = list(phases)
    for bar in (WIDEST_BAR, 12, 8, LEAST_BAR):
        if spans_width(line := _line(kept, glyphs, bar, time=True)) <= width:
            return line
    for state in ("waiting", "skipped", "done"):
        while any(phase.state == state for phase in kept) and len(kept) > 1:
            last = state == "waiting"
            kept.remove(next(phase for phase in (reversed(kept) if last else kept) if phase.state == state))
            if spans_width(line := _line(kept, glyphs, LEAST_BAR, time=True)) <= width:
                return line
    for bar, time in ((LEAST_BAR, False), (0, False)):
        if spans_width(line := _line(kept, glyphs, bar, time=time)) <= width:
            return line
    now = next((phase for phase in kept if phase.state in ("failed", "running")), kept[-1] if kept else None)
    if now is None:
        return []
    tail = "".join(text for text, _ in _phase(now, glyphs, 0, time=False)[1:])
    return [(clip(printable(now.name), max(0, width - len(tail)), ellipsis=glyphs.ellipsis) + tail, "")]


def _line(phases: Sequence[Phase], glyphs: Glyphs, bar: int, *, time: bool) -> list[Span]:
    spans: list[Span] = []
    for phase in phases:
        spans += ([(GAP, "")] if spans else []) + _phase(phase, glyphs, bar, time=time)
    return spans


def _phase(phase: Phase, glyphs: Glyphs, bar: int, *, time: bool) -> list[Span]:
    sign, state = _SIGNS[phase.state]
    spans: list[Span] = [(printable(phase.name), "muted" if phase.state in ("waiting", "done", "skipped") else "")]
    if sign:
        spans.append((f" {sign}", state))
    if phase.state == "running" and phase.fraction is not None and phase.fraction == phase.fraction:
        share = min(1.0, max(0.0, phase.fraction))
        if bar:
            spans.append((f" {glyphs.bar(share, bar)}", "accent"))
        # Rounded down: 100% is said when it is true.
        spans.append((f" {int(share * 100 + 1e-9)}%", ""))
    if phase.state == "running" and time and phase.remaining is not None and 0 <= phase.remaining < 1e9:
        spans.append((f"  ~{show_elapsed(phase.remaining)} left", "muted"))
    elif phase.state == "running" and time and phase.elapsed is not None and phase.elapsed >= 1:
        spans.append((f"  {show_elapsed(phase.elapsed)}", "muted"))
    return spans
