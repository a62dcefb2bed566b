"""What the Job screen says of the card a job works on: its samples, what slowed it, how near it came to its limits."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hfbench.codec import decode
from hfbench.gpu.reading import Unavailable, Value, known
from hfbench.gpu.telemetry.use import GpuUse
from hfbench.jobs.snapshot import JobSnapshot, Series
from hfbench.units import show_bytes
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.glyphs import Glyphs

if TYPE_CHECKING:
    from hfbench.gpu.roofline import Roofline

OF_CARD = "gpu."
"""How the names of metrics begin that are samples of the card, not of the job."""
BAR = 20
"""Cells of a whole bar."""

T = TypeVar("T")
Show = Callable[[float], str]


@dataclass(frozen=True)
class GpuFacts:
    """The samples as they stand, and of a job that is over what its result says instead."""

    series: Mapping[str, Series] | None = None
    use: GpuUse | None = None
    roofline: Roofline | None = None

    def __bool__(self) -> bool:
        return bool(self.series or self.use or self.roofline)

    def facts(self, glyphs: Glyphs) -> list[Fact]:
        """Figures, what slowed the card, why figures are lacking, and a bar for each limit."""
        facts = list(_of_use(self.use, glyphs) if self.use else _of_series(self.series or {}, glyphs))
        return [*facts, *(_of_roofline(self.roofline, glyphs) if self.roofline else ())]


def gpu_facts(snapshot: JobSnapshot) -> GpuFacts:
    """Nothing for a job that touched no GPU and measured no roofline; what another version wrote is left out."""
    series = {name: each for name, each in snapshot.series.items() if name.startswith(OF_CARD)}
    result = snapshot.result or {}
    return GpuFacts(series, _decoded(GpuUse, result.get("gpu")), _roofline(result.get("roofline")))


def _roofline(data: Any) -> Roofline | None:
    if data is None:
        return None
    from hfbench.gpu.roofline import Roofline  # with it comes the arithmetic of models, which no other job needs

    return _decoded(Roofline, data)


def _decoded(kind: type[T], data: Any) -> T | None:
    try:
        return decode(kind, data) if isinstance(data, Mapping) else None
    except (ValueError, TypeError):
        return None


def _of_series(series: Mapping[str, Series], glyphs: Glyphs) -> Iterator[Fact]:
    """Of a job under way: over the samples that are kept."""

    def over(name: str, fold: Callable[[Sequence[float]], float]) -> float | None:
        each = series.get(OF_CARD + name)
        return fold(each.values) if each and each.values else None

    told = [
        _figures("memory", _bytes, ("peak", over("memory", max)), ("mean", over("memory", statistics.fmean))),
        _figures("power", _watts, ("peak", over("power", max)), ("mean", over("power", statistics.fmean))),
        _figures("SM", _clock, ("mean", over("clock_sm", statistics.fmean)), ("least", over("clock_sm", min))),
        _figures("busy", _percent, ("mean", over("utilization", statistics.fmean))),
    ]
    yield from _lines(told, glyphs)


def _of_use(use: GpuUse, glyphs: Glyphs) -> Iterator[Fact]:
    if use.reason:
        yield Fact("GPU", f"not sampled: {use.reason}", "unknown")
        return
    parts: tuple[tuple[str, Show, tuple[tuple[str, Value], ...]], ...] = (
        ("memory", _bytes, (("peak", use.memory_peak), ("mean", use.memory_mean))),
        ("power", _watts, (("peak", use.power_peak), ("mean", use.power_mean))),
        ("SM", _clock, (("mean", use.clock_sm_mean), ("least", use.clock_sm_min))),
        ("busy", _percent, (("mean", use.utilization_mean),)),
    )
    told, why = [], dict[str, list[str]]()
    for name, show, values in parts:
        told.append(_figures(name, show, *((label, known(value)) for label, value in values)) or f"{name} n/a")
        for reason in {value.reason for _, value in values if isinstance(value, Unavailable)}:
            why.setdefault(reason, []).append(name)
    yield from _lines(told, glyphs)
    if use.throttle:
        shares = ", ".join(f"{word} ({_share_of_time(share)})" for word, share in use.throttle.items())
        yield Fact("", f"slowed by: {shares}", "warn")
    for reason, names in why.items():
        yield Fact("", f"{', '.join(names)}: {reason}", "unknown")


def _lines(told: Sequence[str], glyphs: Glyphs) -> Iterator[Fact]:
    """Memory and power on one line, clocks and load below: each fits 80 columns."""
    label = "GPU"
    for part in (told[:2], told[2:]):
        if text := f" {glyphs.dot} ".join(filter(None, part)):
            yield Fact(label, text)
            label = ""


def _of_roofline(found: Roofline, glyphs: Glyphs) -> Iterator[Fact]:
    """The share of what bounds a step: bytes moved (MBU) where that is memory or not known, else FLOP (MFU)."""
    if isinstance(found.bytes, Unavailable):
        yield Fact("roofline", found.bytes.reason, "unknown")
        return
    compute = found.bound == "compute"
    name, measured, spec = ("MFU", found.mfu_measured, found.mfu) if compute else ("MBU", found.mbu_measured, found.mbu)
    device = f" of {found.spec_device}" if isinstance(found.spec_device, str) else ""
    bound = f", {found.bound}-bound" if isinstance(found.bound, str) else ""
    yield _limit(name, measured, f"the {'matmul' if compute else 'copy'} measured in this run{bound}", glyphs)
    yield _limit("", spec, f"the specification{device}", glyphs)
    if isinstance(found.bound, Unavailable) and found.bound != measured:
        yield Fact("", f"what bounds it is not known: {found.bound.reason}", "unknown")


def _limit(name: str, share: Value, of: str, glyphs: Glyphs) -> Fact:
    """A bar with its figure; without one the reason stands there."""
    if isinstance(share, Unavailable):
        return Fact(name, f"n/a of {of}: {share.reason}", "unknown")
    return Fact(name, f"{glyphs.bar(share, BAR)} {100 * share:>3.0f}% of {of}")


def _figures(name: str, show: Show, *values: tuple[str, float | None]) -> str:
    """`memory 61.0 GiB peak, 60.2 GiB mean`; empty when nothing is known."""
    told = [f"{show(value)} {label}" for label, value in values if value is not None]
    return f"{name} {', '.join(told)}" if told else ""


def _share_of_time(share: float) -> str:
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def _bytes(value: float) -> str:
    return show_bytes(value)


def _watts(value: float) -> str:
    return f"{value:.0f} W"


def _clock(value: float) -> str:
    return f"{value:.0f} MHz"


def _percent(value: float) -> str:
    return f"{value:.0f} %"
