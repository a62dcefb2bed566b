"""The result of bench.load: a row a loader, which is the fastest that is safe, and how a person reads it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hfbench.gpu.loading.loaders import PLAIN
from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Samples, Summary
from hfbench.gpu.timing.stopping import MedianInterval, Stop
from hfbench.gpu.timing.verdicts import Verdict, Word, judge
from hfbench.models.problem import counted
from hfbench.text import clip, clip_middle, printable
from hfbench.units import show_bytes, show_seconds

WIDTH = 80
LABEL = 9
NAME = 22
MOST_PARTS = 3
"""Loaders named in one verdict."""
NEXT = {
    Word.FEW_SAMPLES: "raise rounds or budget, or name fewer loaders",
    Word.DRIFT: "look at what else uses this disk, then run again",
}
"""What to try next where the usual advice is about generating."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Loads from one state of the cache. `rate` is bytes of the files a second at the median;
    `of_plain` is that rate as a share of reading the same files plainly, None where that was not measured."""

    seconds: Summary
    rate: float
    of_plain: float | None


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """Most memory of a fresh process while it loaded, in bytes. Resident bytes count mapped files;
    `rss_before_bytes` are Python and its libraries. `cuda_reserved_bytes` is torch's, or None with the `reason`."""

    rss_bytes: int | None
    rss_before_bytes: int | None
    cuda_reserved_bytes: int | None
    reason: str = ""

    @property
    def grown(self) -> int | None:
        """What loading added."""
        if self.rss_bytes is None or self.rss_before_bytes is None:
            return None
        return max(0, self.rss_bytes - self.rss_before_bytes)


@dataclass(frozen=True, kw_only=True)
class LoaderRow:
    """One loader. `reason` is why it could not run, and then there are no figures."""

    loader: str
    summary: str
    format: str
    safe: bool
    """It takes no byte for code, and gave every byte as the file has it."""
    why: str
    reason: str
    bytes: int
    tensors: int
    verified: str
    cold: Speed | None
    warm: Speed | None
    cached_after_cold: float | None
    """Share of the files in the page cache after a cold load: near 0 for loaders that read around it."""
    peaks: Peaks | None

    def speed(self, state: str) -> Speed | None:
        """Of `cold` or `warm`."""
        return self.cold if state == "cold" else self.warm


@dataclass(frozen=True, kw_only=True)
class Fastest:
    """The loader to take for one state of the cache: safe, and no other is faster beyond doubt."""

    loader: str
    rate: float
    tied: tuple[str, ...]
    """Safe loaders whose interval of the median overlaps that of the one with the least median."""
    certain: bool = True
    """False while there are too few samples for intervals: then the least median is all that is known."""


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """One measurement of all loaders on one checkpoint."""

    model: str
    folder: str
    filesystem: str
    device: str
    device_name: str
    files: int
    bytes: int
    rounds: int
    measured_seconds: float
    stop_reason: str
    ci: float
    budget: float
    rows: tuple[LoaderRow, ...]
    fastest: Mapping[str, Fastest]
    """By state of the cache."""
    verdicts: list[Verdict]
    machine: Company
    notes: list[str]

    @property
    def headline(self) -> str:
        """`cold safetensors-mmap 1.2 GB/s (2 alike)  warm ...`."""
        told = []
        for state, found in self.fastest.items():
            alike = f" ({len(found.tied) - 1} alike)" if len(found.tied) > 1 else ""
            told.append(f"{state} {found.loader} {rate(found.rate)}{alike}")
        return "  ".join(told)

    def lines(self) -> list[str]:
        """The result for a terminal of 80 columns."""
        files = f"{counted(self.files, 'file')}, {show_bytes(self.bytes)}, on {self.filesystem}"
        return [
            clip_middle(f"model    {printable(self.model)}", WIDTH),
            clip(f"files    {files}; to {self.device} ({self.device_name})", WIDTH),
            f"taken    {counted(self.rounds, 'round')} in {show_seconds(self.measured_seconds)};"
            f" stopped: {self.stop_reason}",
            "",
            *_table(self.rows),
            "",
            *self._fastest(),
            *(line for verdict in self.verdicts for line in _verdict(verdict)),
            *(line for note in self.notes for line in _wrapped("note", note)),
        ]

    def _fastest(self) -> Iterator[str]:
        for state, found in self.fastest.items():
            doubt = "" if found.certain else "; too few samples to be sure"
            yield from _wrapped(state, f"fastest that is safe: {found.loader}, {rate(found.rate)}{doubt}")
            rates = {row.loader: speed.rate for row in self.rows if (speed := row.speed(state))}
            if even := [f"{each} {rate(rates[each])}" for each in found.tied if each != found.loader]:
                yield from _wrapped("", f"the simplest of those whose intervals overlap: {', '.join(even)}")


def speed(samples: Samples, size: int, plain: Samples | None) -> Speed:
    """The summary of samples over `size` bytes, beside those of plain reading."""
    seconds = samples.summary()
    reference = plain.summary().p50 if plain and plain.values else None
    return Speed(
        seconds=seconds,
        rate=size / seconds.p50 if seconds.p50 else 0.0,
        of_plain=reference / seconds.p50 if reference is not None and seconds.p50 else None,
    )


def fastest(rows: Sequence[LoaderRow], state: str) -> Fastest | None:
    """The first safe loader, in the order of the rows, that the one with the least median does not beat for sure.

    Two are told apart when their 95 % intervals of the median do not overlap; without intervals the median decides.
    """
    known = [(each, found) for each in rows if each.safe and each.loader != PLAIN and (found := each.speed(state))]
    if not known:
        return None
    _, least = min(known, key=lambda pair: pair[1].seconds.p50)
    tied = [(row, found) for row, found in known if found is least or _overlap(found.seconds, least.seconds)]
    row, found = tied[0]
    return Fastest(
        loader=row.loader,
        rate=found.rate,
        tied=tuple(each.loader for each, _ in tied),
        certain=all(each.seconds.ci_low is not None for _, each in known),
    )


def verdicts(watched: Sequence[Samples], *, rule: MedianInterval, stop: Stop, company: Company) -> list[Verdict]:
    """What speaks against the measurement, with advice about loading."""
    told = judge(watched, rule=rule, stop=stop, company=company)
    return [replace(each, detail=_short(each.detail), next=NEXT.get(each.word, each.next)) for each in told]


def _short(detail: str) -> str:
    """The first of many parts: a dozen loaders say the same of themselves."""
    parts = detail.split("; ")
    more = f"; and {len(parts) - MOST_PARTS} more" if len(parts) > MOST_PARTS else ""
    return "; ".join(parts[:MOST_PARTS]) + more


def rate(value: float) -> str:
    """Bytes a second in GB/s, as disks are sold; three digits."""
    return f"{value / 1e9:.3g} GB/s"


def _overlap(one: Summary, other: Summary) -> bool:
    if one.ci_low is None or one.ci_high is None or other.ci_low is None or other.ci_high is None:
        return False
    return one.ci_low <= other.ci_high and other.ci_low <= one.ci_high


def _table(rows: Sequence[LoaderRow]) -> Iterator[str]:
    """Rows of at most 80 cells; numbers are right-aligned and never cut."""
    yield f"{'loader':<{NAME}}{'cold':>12}{'of plain':>9}{'warm':>12}{'of plain':>9}{'peak':>10}  safe"
    for row in rows:
        if row.reason:
            yield clip(f"{row.loader:<{NAME}}  - {printable(row.reason)}", WIDTH, ellipsis="...")
            continue
        cells = "".join(_cells(row.speed(state)) for state in ("cold", "warm"))
        grown = row.peaks.grown if row.peaks else None
        peak = show_bytes(grown) if grown is not None else "-"
        safe = "" if row.loader == PLAIN else "yes" if row.safe else "no"
        yield f"{row.loader:<{NAME}}{cells}{peak:>10}  {safe}".rstrip()


def _cells(found: Speed | None) -> str:
    if found is None:
        return f"{'-':>12}{'':>9}"
    share = f"{found.of_plain:.0%}" if found.of_plain is not None else "-"
    return f"{rate(found.rate):>12}{share:>9}"


def _verdict(verdict: Verdict) -> list[str]:
    return [*_wrapped("verdict", f"{verdict.word}: {verdict.detail}"), *_wrapped("", f"next: {verdict.next}")]


def _wrapped(label: str, text: str) -> list[str]:
    indent = " " * LABEL
    return textwrap.wrap(printable(text), WIDTH, initial_indent=f"{label:<{LABEL}}", subsequent_indent=indent)
