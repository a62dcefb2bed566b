"""What the machine is doing, on one line."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.text import printable
from hfbench.units import GIB
from hfbench.widgets.cells import Span, clip, spans_width
from hfbench.widgets.glyphs import Glyphs

BARS = (12, 8, 5, 0)
FULL, SOME, LEAST = 3, 2, 1
SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """One card. Bytes, per cent, degrees Celsius and watts; None where the driver does not say.

    `reason` replaces the numbers when the card cannot be read at all.
    """

    index: int
    name: str = ""
    used: int | None = None
    total: int | None = None
    utilisation: float | None = None
    temperature: float | None = None
    power: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StripState:
    """The machine at one moment: its cards, or the reason there are none and what is there instead."""

    gpus: tuple[GpuLoad, ...] = ()
    reason: str = ""
    host: str = ""
    """Shown with the reason, for example `cpu 2 cores 23 GiB`."""
    latest: str = ""
    """The last job that measured a figure, for example `job 3f9a1c: tpot 8.1 ms`."""
    note: str = ""
    """For example `stale 4 s`."""


def machine_line(state: StripState, width: int, glyphs: Glyphs) -> list[Span]:
    """The strip in `width` cells: every card is always named; narrow lines drop detail, never digits."""
    right = [(printable(text), style) for text, style in ((state.note, "warn"), (state.latest, "muted")) if text]
    for keep in range(len(right) + 1):
        end: list[Span] = []
        for text, style in right[keep:]:
            end += [("  ", ""), (text, style)]
        line = _best(state, width - spans_width(end), glyphs)
        if line is not None:
            spaces = width - spans_width(line) - spans_width(end)
            return [*line, (" " * spaces, ""), *end]
    count = f"{len(state.gpus)} GPUs" if state.gpus else _no_gpu(state, glyphs)
    return [(clip(count, width, ellipsis=glyphs.ellipsis), "muted")]


def _best(state: StripState, width: int, glyphs: Glyphs) -> list[Span] | None:
    if not state.gpus:
        text = _no_gpu(state, glyphs)
        line: list[Span] = [(text, "muted")]
        return line if spans_width(line) <= width else None
    for detail in (FULL, SOME, LEAST):
        for bar in BARS if detail > LEAST else (3, 0):
            line = []
            for gpu in state.gpus:
                line += ([(SEPARATOR if detail > LEAST else " ", "")] if line else []) + _card(gpu, bar, detail, glyphs)
            if spans_width(line) <= width:
                return line
    return None


def _no_gpu(state: StripState, glyphs: Glyphs) -> str:
    facts = [printable(text) for text in (state.reason or "no GPU", state.host) if text]
    return f" {glyphs.dot} ".join(facts)


def _card(gpu: GpuLoad, bar: int, detail: int, glyphs: Glyphs) -> list[Span]:
    full = detail == FULL  # many cards in few styles: each change of style takes more bytes than what it paints
    spans: list[Span] = [(str(gpu.index), "title" if full else "")]
    if detail == FULL and gpu.name:
        spans.append((f" {printable(gpu.name)}", ""))
    if gpu.reason:
        return [*spans, (f" {glyphs.error}" + (f" {printable(gpu.reason)}" if detail > LEAST else ""), "error")]
    if gpu.used is not None and gpu.total:
        share = gpu.used / gpu.total
        if bar:
            spans.append((f" {glyphs.bar(share, bar)}", "warn" if share > 0.95 else "accent" if full else ""))
        if detail > LEAST:
            spans.append((f" {gpu.used / GIB:.0f}/{gpu.total / GIB:.0f}G", ""))
    idle = gpu.utilisation == 0
    if gpu.utilisation is not None:
        spans.append((" idle" if idle else f" {gpu.utilisation:.0f}%", "muted" if idle and full else ""))
    if detail == FULL and gpu.temperature is not None:
        spans.append((f" {gpu.temperature:.0f}C", ""))
    if detail == FULL and gpu.power is not None:
        spans.append((f" {gpu.power:.0f}W", ""))
    if len(spans) == 1 + (detail == FULL and bool(gpu.name)):
        spans.append((f" {glyphs.unknown}", "unknown"))
    return spans
