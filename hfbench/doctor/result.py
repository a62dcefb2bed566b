"""What the doctor found: a report a check, in the order of the topics, as data and as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hfbench.line_width import paragraph
from hfbench.text import printable

Verdict = Literal["ok", "warning", "error", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("error", "warning", "unknown", "ok")
"""Worst first."""
SIGNS: dict[Verdict, str] = {"ok": "ok", "warning": "!", "error": "x", "unknown": "?"}
INDENT = 5
LABEL = 26
"""Cells of a check's title in a row."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One thing that was read: what it said, and the file, variable or call it was read from."""

    read: str
    where: str


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """What one check found. `remedy` is empty where nothing is to be done."""

    id: str
    topic: str
    title: str
    verdict: Verdict
    found: str
    """One clause."""
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""
    why: str = ""
    """What goes wrong for whoever falls into it."""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class DoctorReport:
    """All checks that were made, by topic; `failed` when one of them is an error."""

    checks: tuple[CheckReport, ...]
    host: str
    seconds: float
    environments: int = 0
    """Interpreters that were asked, this one not counted."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the checks, in their order."""
        return tuple(dict.fromkeys(check.topic for check in self.checks))

    def of(self, topic: str) -> tuple[CheckReport, ...]:
        """The checks of one topic, in their order."""
        return tuple(check for check in self.checks if check.topic == topic)

    def count(self, verdict: Verdict) -> int:
        """How many checks ended with a verdict."""
        return sum(check.verdict == verdict for check in self.checks)

    @property
    def failed(self) -> bool:
        """True when a check is an error; warnings and what could not be told leave the exit code 0."""
        return self.count("error") > 0

    @property
    def headline(self) -> str:
        """`1 error, 3 warnings, 2 unknown, 41 ok`."""
        return ", ".join(_told(verdict, self.count(verdict)) for verdict in VERDICTS if self.count(verdict))

    def lines(self) -> list[str]:
        """A heading a topic, a row a check with its remedy and evidence below those that are not ok."""
        told = [line for topic in self.topics for line in (topic, *_rows(self.of(topic)), "")]
        return [*told, f"{self.headline or 'no check'} ({self.host}, {self.seconds:.1f} s)"]


def worst(reports: Iterable[CheckReport]) -> Verdict:
    """The worst verdict of some checks; `ok` of none."""
    found = {report.verdict for report in reports}
    return next((verdict for verdict in VERDICTS if verdict in found), "ok")


def _told(verdict: Verdict, count: int) -> str:
    return f"{count} {verdict}s" if verdict in ("error", "warning") and count > 1 else f"{count} {verdict}"


def _rows(reports: Iterable[CheckReport]) -> Iterator[str]:
    for report in reports:
        head = f"  {SIGNS[report.verdict]:<{INDENT - 2}}{report.title:<{LABEL}} "
        first, *more = paragraph(printable(report.found), len(head)) or [""]
        yield head + first
        yield from (" " * len(head) + line for line in more)
        if report.verdict == "ok":
            continue
        for label, text in (("do", report.remedy), *(("in", _sentence(each)) for each in report.evidence)):
            for number, line in enumerate(paragraph(printable(text), INDENT + 4, most=3)):
                yield f"{'':{INDENT}}{'' if number else label:<4}{line}"
        yield f"{'':{INDENT}}id  {report.id}"


def _sentence(evidence: Evidence) -> str:
    return f"{evidence.where}: {evidence.read}"
