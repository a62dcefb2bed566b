"""check: whether anything is wrong with a model, by rules with stable ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.checks.finding import Finding, Verdict
from hfbench.errors import begun
from hfbench.exits import Exit
from hfbench.models.problem import counted
from hfbench.text import clip_middle

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WIDTH = 80
INDENT = 2

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
    exit: int
    """0 clean, 1 findings at or above the severity asked for, 2 nothing could be judged."""
    form: Literal["table", "sarif"] = "table"
    """What `lines` gives."""

    @property
    def failed(self) -> bool:
        """True when a finding is severe enough."""
        return self.exit != Exit.OK

    def lines(self) -> list[str]:
        """The findings for people, at most 80 columns wide, or SARIF."""
        if self.form == "sarif":
            from hfbench.checks.sarif import sarif_text

            return sarif_text(self.model, self.findings).splitlines()
        told = [counted(self.counts[severity], severity) for severity in _ORDER if self.counts.get(severity)]
        head = [clip_middle(self.model, WIDTH, ellipsis="..."), f"{self.verdict}: {_IN_WORDS[self.verdict]}"]
        if told:
            head[1] += f" ({', '.join(told)})"
        return head + [line for finding in self.findings for line in _shown(finding)]


@action("check", result=CheckResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Check:
    """Check a model for what will keep it from loading, running or being safe, from its files alone."""

    model: str = param("Folder, repository in the cache, or one file of weights", kind="model", positional=True)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")
    offline: bool = param("Say what is missing without the network; the network is never used here", default=False)
    dtype: str | None = param("Dtype the model is to be loaded in", default=None, choices=DTYPES)
    quantization: str | None = param("Method of quantization that is to be asked for", default=None)
    fail_on: str = param("Least severity that makes the exit code 1", default="error", choices=_ORDER)
    sarif: bool = param("Print SARIF instead of the table", default=False)

    def perform(self, run: Run) -> CheckResult:
        """Judge the model by every rule; UsageError when the target cannot be one."""
        from hfbench.checks.run import check
        from hfbench.checks.subject import Options

        options = Options(dtype=self.dtype, quantization=self.quantization)
        report = check(self.model, cache_dir=self.cache_dir, options=options)
        counts = Counter(each.severity for each in report.findings)
        severe = any(counts[severity] for severity in _ORDER[: _ORDER.index(self.fail_on) + 1])  # type: ignore[index]
        return CheckResult(
            model=report.model,
            verdict=report.verdict,
            findings=report.findings,
            counts={severity: counts[severity] for severity in _ORDER},  # type: ignore[index]
            exit=int(Exit.USAGE if not report.judged else Exit.FAILED if severe else Exit.OK),
            form="sarif" if self.sarif else "table",
        )


def _shown(finding: Finding) -> list[str]:
    where = f"{finding.file}: " if finding.file else ""
    remedy = f". {begun(finding.remedy)}" if finding.remedy else ""
    text = f"{_SIGNS[finding.severity]} {finding.id} {where}{finding.message}{remedy}"
    return wrap(text, WIDTH, subsequent_indent=" " * INDENT, max_lines=5, placeholder=" ...", break_on_hyphens=False)
