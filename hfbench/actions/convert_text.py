"""Results of conversions to and from Megatron, and their lines for people: the plan as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.convert.plan_table import FileBytes, PlanRow, Proposal
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from hfbench.actions.convert_megatron import ConvertMegatronResult
    from hfbench.convert.megatron.converting import Conversion
    from hfbench.convert.stream.convert import Written

SHOWN = 8
"""Ranks, dropped tensors and findings that are listed for people."""

LABEL = 10


@dataclass(frozen=True, kw_only=True)
class CastFinding:
    """Values of a tensor that the cast lost, as it was allowed to."""

    tensor: str
    kind: str
    values: int


@dataclass(frozen=True, kw_only=True)
class ConversionResult:
    """A plan and what was written of it; `resumed_bytes` of the `bytes` were left by a run that stopped."""

    folder: str
    dry_run: bool
    family: str
    tensors: int
    files: tuple[str, ...]
    bytes: int
    plan: tuple[PlanRow, ...]
    """One row for targets that differ in layer, expert and rank alone."""
    ranks: tuple[FileBytes, ...]
    dropped: tuple[str, ...]
    """`NAME: why` of source tensors that have no place, `N x NAME: why` where they differ in layer or rank alone."""
    notes: tuple[str, ...]
    findings: tuple[CastFinding, ...]
    seconds: float
    resumed_bytes: int
    reused: bool

    @property
    def headline(self) -> str:
        """`llama: 54 tensors, 4.2 GiB; nothing was written`."""
        return f"{self.family}: {counted(self.tensors, 'tensor')}, {show_bytes(self.bytes)}; {self.outcome}"

    @property
    def outcome(self) -> str:
        """What became of the plan."""
        if self.dry_run:
            return "nothing was written"
        if self.reused:
            return "was there already"
        rate = f", {show_bytes((self.bytes - self.resumed_bytes) / self.seconds)}/s" if self.seconds > 0 else ""
        return f"written in {show_seconds(self.seconds)}{rate}"


def conversion_fields(found: Conversion, folder: Path, written: Written | None) -> dict[str, Any]:
    """The fields that results of both directions share."""
    from hfbench.convert.formats.layout import bytes_of
    from hfbench.convert.plan_table import dropped_rows, plan_rows

    plan = found.plan
    return {
        "folder": str(folder),
        "dry_run": written is None,
        "family": plan.family,
        "tensors": len(plan.targets),
        "files": (*(each.path for each in found.layouts), *sorted(found.extra)),
        "bytes": sum(bytes_of(each.spec) for each in plan.targets),
        "plan": plan_rows(plan.targets),
        "ranks": tuple(FileBytes(name=name, bytes=size) for name, size in found.ranks.items()),
        "dropped": dropped_rows(plan.dropped),
        "notes": plan.notes,
        "findings": tuple(
            CastFinding(tensor=each.tensor, kind=each.kind, values=each.values)
            for each in (written.findings if written else ())
        ),
        "seconds": written.seconds if written else 0.0,
        "resumed_bytes": written.resumed_bytes if written else 0,
        "reused": bool(written and written.reused),
    }


def megatron_lines(result: ConvertMegatronResult) -> list[str]:
    """The plan, the ranks with their bytes, other layouts and the launch flags."""
    degrees = f"TP {result.tp}, PP {result.pp}, EP {result.ep}"
    return [
        *_labelled("folder", [printable(result.folder)]),
        *_labelled("layout", [f"{result.format}, {degrees}, names of {result.names}"]),
        *plan_lines(result.plan),
        *_labelled("ranks", list(_rank_lines(result.ranks))),
        *_labelled("layouts", [line for each in result.proposals for line in _proposal(each)]),
        *_wrapped("launch", [" ".join(result.launch_flags)]),
        *ending_lines(result),
    ]


def plan_lines(rows: Sequence[PlanRow]) -> Iterator[str]:
    """Two lines a row: the target with its number, shape and bytes, and what it is made of."""
    for row in rows:
        times = f"{row.count:,} x " if row.count > 1 else ""
        figures = f"  {times}{list(row.shape)} {row.dtype} {show_bytes(row.bytes)}"
        yield cut(printable(row.target), len(figures)) + figures
        fill = f", {row.fill}" if row.fill else ""
        end = f"  {row.transform}{fill}"
        yield f"  <- {cut(printable(row.sources), len(end) + len('  <- '))}{end}"


def ending_lines(result: ConversionResult) -> Iterator[str]:
    """What is left out, what a cast lost, notes, and the headline."""
    allowed = [f"{each.values:,} {each.kind} in {printable(each.tensor)}" for each in result.findings]
    yield from _labelled("left out", _first([printable(each) for each in result.dropped]))
    yield from _labelled("allowed", _first(allowed))
    yield from _wrapped("notes", result.notes)
    if result.resumed_bytes and not result.reused:
        yield from _labelled("went on", [f"{show_bytes(result.resumed_bytes)} were there from a run that had stopped"])
    yield result.headline


def _rank_lines(ranks: Sequence[FileBytes]) -> Iterator[str]:
    for each in ranks[:SHOWN]:
        yield f"{each.name:<20}{show_bytes(each.bytes):>10}"
    if len(ranks) > SHOWN:
        sizes = sorted(each.bytes for each in ranks)
        yield f"and {len(ranks) - SHOWN:,} more, {show_bytes(sizes[0])} to {show_bytes(sizes[-1])} each"


def _proposal(each: Proposal) -> Iterator[str]:
    yield f"TP {each.tp} PP {each.pp} EP {each.ep}: {show_bytes(each.rank_bytes)} a rank, {each.reason}"


def _first(texts: Sequence[str]) -> list[str]:
    more = [f"and {len(texts) - SHOWN:,} more (--json lists all)"] if len(texts) > SHOWN else []
    return [*texts[:SHOWN], *more]


def _labelled(label: str, texts: Sequence[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        yield f"{'' if place else label:<{LABEL}}{cut(text, LABEL)}"


def _wrapped(label: str, texts: Sequence[str]) -> Iterator[str]:
    lines = [line for text in texts for line in paragraph(printable(text), LABEL)]
    for place, line in enumerate(lines):
        yield f"{'' if place else label:<{LABEL}}{line}"
