"""The result of bench.compare: both sides, verdicts from their rounds, and how a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from hfbench.codec import encode
from hfbench.compare.conditions import Runs, ask
from hfbench.compare.judging import WITHIN, in_turns, judge_metric, spoils_of_run
from hfbench.compare.lines import condition_lines, metric_lines, wrapped
from hfbench.compare.metrics import metrics_of
from hfbench.compare.result import Condition, MetricVerdict, failing
from hfbench.compare.wish import parse_wish
from hfbench.gpu.telemetry.use import GpuUse
from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Summary
from hfbench.gpu.timing.verdicts import Verdict
from hfbench.gpu.turns_result import TakenTurns, TurnMetrics, TurnRow
from hfbench.line_width import cut_end
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_seconds

RATES = {"throughput": "tok/s", "prefill_rate": "tok/s"}
"""Units of what is no time."""


@dataclass(frozen=True, kw_only=True)
class TurnsResult:
    """Two settings of a model, or two models, measured in turns in one run."""

    rows: tuple[TurnRow, TurnRow]
    """A, then B."""
    differ: dict[str, tuple[Any, Any]]
    """Settings in which they differ: (A's, B's) by name."""
    compared: tuple[MetricVerdict, ...]
    ratio: Summary
    """B's time per token as a share of A's, a sample a round."""
    rounds: int
    first: str
    """Who began each round, a letter a round."""
    measured_seconds: float
    stop_reason: str
    verdicts: list[Verdict]
    machine: Company
    notes: list[str]
    gpu: GpuUse | None = None
    conditions: tuple[Condition, ...] = ()
    strict: bool = False

    @property
    def failed(self) -> bool:
        """Whether a condition of `--fail-if` holds."""
        return failing(self.conditions, strict=self.strict)

    @property
    def exit(self) -> int:
        """0, or 1 when a condition holds."""
        return int(self.failed)

    @property
    def headline(self) -> str:
        """`B SLOWER: 1.052x of A's time per token (1.041..1.063)`."""
        found = next((each for each in self.compared if each.metric == "tpot"), None)
        if found is None or found.ratio is None:
            return f"{counted(self.rounds, 'round')} in turns"
        around = f" ({found.low:.3f}..{found.high:.3f})" if found.low is not None and found.high is not None else ""
        return f"B {found.word}: {found.ratio:.3f}x of A's time per token{around}"

    def lines(self) -> list[str]:
        """What differs, the table, and what is to be said of it."""
        a = self.rows[0]
        shape = f"batch {a.batch}, {counted(a.prompt_tokens, 'prompt token')}, {a.new_tokens} new"
        what = [
            f"{name} {printable(str(one))} -> {printable(str(other))}" for name, (one, other) in self.differ.items()
        ]
        same = "nothing: A and B are the same, and what differs is noise"
        return [
            cut_end(f"model    {printable(a.model)}"),
            cut_end(f"A        {a.device}, {a.dtype}, {a.mode}, {counted(a.threads, 'thread')}; {shape}"),
            *wrapped("A -> B", "; ".join(what) or same),
            cut_end(
                f"taken    {counted(self.rounds, 'round')} in {show_seconds(self.measured_seconds)}, both once a round,"
                f" the first drawn by lot; stopped: {self.stop_reason}"
            ),
            "",
            *metric_lines(self.compared, "B"),
            "",
            *(line for each in self.conditions for line in condition_lines(each)),
            *(
                line
                for row in self.rows
                if row.verified
                for line in wrapped("checked", f"{row.name}: {row.verified.sentence}")
            ),
            *(
                line
                for each in self.verdicts
                for line in wrapped("verdict", f"{each.word}: {each.detail}; next: {each.next}")
            ),
            *(wrapped("gpu", self.gpu.sentence) if self.gpu else []),
            *(line for note in self.notes for line in wrapped("note", note)),
        ]


def refuse_unreadable(fail_if: Sequence[str]) -> None:
    """UsageError for a condition that cannot be read, or asked of such a run: before minutes are spent on measuring."""
    metrics = {
        each.name: {"p50": 1.0, "mean": 1.0, "n": 8, "samples": [1.0] * 8, "unit": RATES.get(each.name, "s")}
        for each in fields(TurnMetrics)
    }
    blank = Runs(a={"metrics": metrics}, b={"metrics": metrics})
    for text in fail_if:
        ask(parse_wish(text), [blank])


def turns_result(
    taken: TakenTurns,
    params: tuple[dict[str, Any], dict[str, Any]],
    *,
    fail_if: Sequence[str] = (),
    within: float = WITHIN,
    strict: bool = False,
) -> TurnsResult:
    """Judge what was taken in turns. `params` are all settings of A and of B."""
    rows = tuple(replace(row, params=own) for row, own in zip(taken.rows, params, strict=True))
    a, b = ({"verdicts": [], **encode(row)} for row in rows)
    ours, theirs = metrics_of(a), metrics_of(b)
    spoils = in_turns(spoils_of_run({"verdicts": encode(taken.verdicts)}, "both"))
    compared = [judge_metric(ours[name], theirs[name], paired=True, spoils=spoils, within=within) for name in ours]
    runs = [Runs(a=a, b=b, paired=True, spoils=tuple(spoils))]
    first, second = params
    return TurnsResult(
        rows=(rows[0], rows[1]),
        differ={name: (first.get(name), value) for name, value in second.items() if first.get(name) != value},
        compared=tuple(compared),
        ratio=taken.ratio,
        rounds=taken.rounds,
        first=taken.first,
        measured_seconds=taken.measured_seconds,
        stop_reason=taken.stop_reason,
        verdicts=taken.verdicts,
        machine=taken.machine,
        notes=taken.notes,
        gpu=taken.gpu,
        conditions=tuple(ask(parse_wish(text), runs) for text in fail_if),
        strict=strict,
    )
