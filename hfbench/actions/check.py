"""check: whether anything is wrong with a model, by rules with stable ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.checks.finding import Finding, Verdict
from hfbench.checks.values_table import value_lines
from hfbench.errors import begun
from hfbench.exits import Exit
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted
from hfbench.models.values.facts import ValueScan

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

INDENT = 9
"""Cells before a sentence: its sign and the id of the rule."""

MOST_LINES = 6
MOST_ALIKE = 5
"""Findings of one rule that are written out; a folder with two hundred files missing says so in a few."""

DTYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")

_SIGNS = {"error": "x", "warning": "!", "info": "~"}
_ORDER = ("error", "warning", "info")
_IN_WORDS = {
    "ok": "nothing speaks against it",
    "warn": "it may load, but see below",
    "refuse": "do not use it as it is",
}


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The verdict on a model and every finding, errors first."""

    model: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    """Findings by severity."""
    folder: str
    """Where the files lie that findings name."""
    exit: int
    """0 clean, 1 findings at or above the severity asked for, 2 nothing could be judged."""
    form: Literal["table", "sarif"] = "table"
    """What `lines` gives."""
    values: ValueScan | None = None
    """The figures of every tensor, where they were asked for."""

    @property
    def failed(self) -> bool:
        """True when a finding is severe enough."""
        return self.exit != Exit.OK

    def lines(self) -> list[str]:
        """The findings for people, as wide as the terminal, or SARIF."""
        if self.form == "sarif":
            from hfbench.checks.sarif import sarif_text

            return sarif_text(self.folder, self.findings).splitlines()
        told = [counted(self.counts[severity], severity) for severity in _ORDER if self.counts.get(severity)]
        words = "nothing could be judged" if self.exit == Exit.USAGE else _IN_WORDS[self.verdict]
        head = [cut(self.model), f"{self.verdict}: {words}"]
        if told:
            head[1] += f" ({', '.join(told)})"
        measured = ["", *value_lines(self.values)] if self.values else []
        return [*head, *([""] if self.findings else []), *_told(self.findings), *measured]


@action("check", result=CheckResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Check:
    """Check a model for what will keep it from loading, running or being safe, from its files alone."""

    model: str = param("Folder, repository in the cache, or one file of weights", kind="model", positional=True)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")
    offline: bool = param("Say what is missing without the network; the network is never used here", default=False)
    dtype: str | None = param("Dtype the model is to be loaded in", default=None, choices=DTYPES)
    quantization: str | None = param("Method of quantization that is to be asked for", default=None)
    values: bool = param("Read every value: NaN, Inf, largest magnitudes, zeros, what float16 loses", default=False)
    fail_on: str = param("Least severity that makes the exit code 1", default="error", choices=_ORDER)
    sarif: bool = param("Print SARIF instead of the table", default=False)

    def perform(self, run: Run) -> CheckResult:
        """Judge the model by every rule; UsageError when the target cannot be one, MissingError without numpy if values
        are asked for."""
        from hfbench.checks.run import check
        from hfbench.checks.subject import Options

        options = Options(dtype=self.dtype, quantization=self.quantization, values=self.values)
        report = check(
            self.model,
            cache_dir=self.cache_dir,
            options=options,
            watch=lambda done, total: run.progress("values", done, total, "B"),
        )
        counts = Counter(each.severity for each in report.findings)
        severe = any(counts[severity] for severity in _ORDER[: _ORDER.index(self.fail_on) + 1])  # type: ignore[index]
        return CheckResult(
            model=report.model,
            folder=report.folder,
            verdict=report.verdict,
            findings=report.findings,
            counts={severity: counts[severity] for severity in _ORDER},  # type: ignore[index]
            exit=int(Exit.USAGE if not report.judged else Exit.FAILED if severe else Exit.OK),
            form="sarif" if self.sarif else "table",
            values=report.values,
        )


def _told(findings: Sequence[Finding]) -> Iterator[str]:
    """Each finding as a paragraph; of many of one kind the first ones, and how many more there are."""
    for (_, rule), run in groupby(findings, lambda each: (each.severity, each.id)):
        alike = list(run)
        for finding in alike[:MOST_ALIKE]:
            yield from _paragraph(finding)
        if len(alike) > MOST_ALIKE:
            yield f"{'':<{INDENT}}and {len(alike) - MOST_ALIKE:,} more of {rule}; --json lists all"
    if findings:
        yield ""
        yield f"hfbench rule {findings[0].id} tells why this is looked for and what to do"


def _paragraph(finding: Finding) -> Iterator[str]:
    """Sign, id and sentence; the remedy is never lost, however long the sentence is."""
    place = f"{finding.file}: " if finding.file else ""
    found = f"{place}{finding.message}"
    remedy = f"{begun(finding.remedy.rstrip('.'))}." if finding.remedy else ""
    lines = _wrapped(" ".join(filter(None, [f"{found}." if remedy else found, remedy])))
    if len(lines) > MOST_LINES:
        lines = [*_wrapped(found, MOST_LINES - 2), *_wrapped(remedy, 2)]
    head = f"{_SIGNS[finding.severity]:<2} {finding.id}"
    for number, line in enumerate(lines):
        yield f"{'' if number else head:<{INDENT}}{line}"


def _wrapped(text: str, most: int | None = None) -> list[str]:
    return paragraph(text, INDENT, most=most)
