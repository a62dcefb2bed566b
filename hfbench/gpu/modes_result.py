"""The result of bench.modes: one row a mode, each against eager, and how a person reads it."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.gpu.generate_result import Compiled, EngineUsed, Verified
from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Summary
from hfbench.gpu.timing.verdicts import Verdict
from hfbench.line_width import cut, cut_end, paragraph
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_seconds

LABEL = 9
NAME = 22
"""Cells of a mode's name in the table; a longer one has a line of its own."""
ENGINE = "engine:"


@dataclass(frozen=True, kw_only=True)
class ModeRow:
    """One mode: its times in seconds, and its time per token as a share of eager's, round by round."""

    mode: str
    word: str
    """`reference`, `faster`, `slower`, `same`, `undecided`, or `not run`."""
    reason: str = ""
    """Why it was not run."""
    ttft: Summary | None = None
    tpot: Summary | None = None
    ratio: Summary | None = None
    """None for eager and where it was not run."""
    verified: Verified | None = None
    compiled: Compiled | None = None
    engine: EngineUsed | None = None

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Sentences about it with their labels."""
        each = (("checked", self.verified), ("compiled", self.compiled), ("engine", self.engine))
        return [(label, held.sentence) for label, held in each if held is not None]


@dataclass(frozen=True, kw_only=True)
class ModesResult:
    """Several modes of executing one model, measured in turns in one run."""

    model: str
    folder: str
    device: str
    dtype: str
    batch: int
    prompt_tokens: int
    new_tokens: int
    threads: int
    rounds: int
    measured_seconds: float
    stop_reason: str
    rows: list[ModeRow]
    verdicts: list[Verdict]
    machine: Company
    notes: list[str]
    warmup_rounds: int = 0
    """Rounds before the first that counts; they are part of the budget."""
    warmup_seconds: float = 0.0

    @property
    def headline(self) -> str:
        """`fastest engine:smol: 0.62x of eager's time per token`; eager when nothing beats it."""
        faster = [row for row in self.rows if row.ratio is not None and row.word == "faster"]
        if not faster:
            return "no mode is faster than eager beyond doubt"
        best = min(faster, key=lambda row: row.ratio.p50 if row.ratio else 1.0)
        assert best.ratio is not None
        return f"fastest {shown_mode(best.mode)}: {best.ratio.p50:.2f}x of eager's time per token"

    def lines(self) -> list[str]:
        """The setting, the table, and what is to be said of each mode."""
        shape = f"batch {self.batch}, {counted(self.prompt_tokens, 'prompt token')}, {self.new_tokens} new"
        return [
            cut(f"model    {printable(self.model)}"),
            cut_end(f"run      {self.device}, {self.dtype}, {counted(self.threads, 'thread')}; {shape}"),
            cut_end(
                f"taken    {counted(self.rounds, 'round')} in {show_seconds(self.measured_seconds)}, every mode once a"
                f" round; stopped: {self.stop_reason}"
            ),
            *([cut_end(self._warmed)] if self.warmup_seconds else []),
            "",
            f"{'mode':<{NAME}}{'ttft p50':>10}{'tpot p50':>10}  {'x of eager':>10}  {'95%':<14}verdict",
            *(line for row in self.rows for line in _row_lines(row)),
            "",
            *(
                line
                for row in self.rows
                for label, text in row.notes
                for line in _wrapped(label, f"{shown_mode(row.mode)}: {text}")
            ),
            *(
                line
                for verdict in self.verdicts
                for line in _wrapped("verdict", f"{verdict.word}: {verdict.detail}; next: {verdict.next}")
            ),
            *(line for note in self.notes for line in _wrapped("note", note)),
        ]

    @property
    def _warmed(self) -> str:
        rounds, seconds = counted(self.warmup_rounds, "round"), show_seconds(self.warmup_seconds)
        whole = show_seconds(self.warmup_seconds + self.measured_seconds)
        return f"warm-up  {rounds} in {seconds} before them; {whole} of the budget in all"


def shown_mode(mode: str) -> str:
    """A mode as tables have room for it: of an engine's folder the last part."""
    return ENGINE + mode.rstrip("/").rpartition("/")[2].removeprefix(ENGINE) if mode.startswith(ENGINE) else mode


def _row_lines(row: ModeRow) -> list[str]:
    """One line, or two where the name is longer than its column."""
    name = printable(shown_mode(row.mode))
    wide = len(name) >= NAME
    head = [cut(name)] if wide else []
    start = f"{'' if wide else name:<{NAME}}"
    if row.tpot is None or row.ttft is None:
        return [*head, *paragraph(f"not run: {printable(row.reason)}", first=start, later=" " * NAME)]
    times = f"{show_seconds(row.ttft.p50):>10}{show_seconds(row.tpot.p50):>10}"
    if row.ratio is None:
        return [*head, f"{start}{times}  {'1':>10}  {'':<14}{row.word}"]
    low, high = row.ratio.ci_low, row.ratio.ci_high
    interval = f"{low:.3f}..{high:.3f}" if low is not None and high is not None else "too few"
    return [*head, f"{start}{times}  {row.ratio.p50:>10.3f}  {interval:<14}{row.word}"]


def _wrapped(label: str, text: str) -> list[str]:
    return paragraph(printable(text), first=f"{label:<{LABEL}}", later=" " * LABEL)
