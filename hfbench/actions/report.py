"""report: a job, a sweep or a script's results as a document for somebody else."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import Problem, command_line, param
from hfbench.errors import UsageError
from hfbench.line_width import cut
from hfbench.text import shell_line
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.compare.subject import Measured
    from hfbench.jobs.run import Run

LINES_OF_A_RESULT = 100
"""Cells that the lines of a result without metrics are laid out for."""


@dataclass(frozen=True, kw_only=True)
class ReportResult:
    """The report: where it was written, or its text where no file was named."""

    format: str
    title: str
    bytes: int
    file: str = ""
    text: str = ""
    notes: tuple[str, ...] = ()
    """What a reader of the report is told before everything else."""

    @property
    def headline(self) -> str:
        """`html report of bench.generate of smollm2-135m, 84.2 KiB`."""
        return f"{self.format} report of {self.title}, {show_bytes(self.bytes)}"

    def lines(self) -> list[str]:
        """The report itself, or where it is."""
        if self.text:
            return self.text.rstrip("\n").split("\n")
        return [self.headline, cut(self.file), *self.notes]


@action("report", result=ReportResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Report:
    """Write a report of a job, a sweep, a baseline or the results of a script.

    Environment, method, tables, plots and how to run it again; HTML is one file that needs no network. With `against`
    it compares too.
    """

    subject: str = param("Job id, sweep, baseline or result file", positional=True)
    against: tuple[str, ...] = param("What to compare it with: it is A, these are B and further ones", default=())
    format: Literal["auto", "md", "html", "csv", "json", "junit"] = param(
        "Markdown, a page with plots, figures as CSV, all samples as JSON, JUnit XML; auto goes by the file name",
        default="auto",
    )
    out: Path | None = param(
        "File to write; default standard output, for a job its artifacts", default=None, kind="path"
    )
    fail_if: tuple[str, ...] = param(
        "Conditions to ask of the comparison, as in hfbench compare; they are in the report", default=()
    )

    def perform(self, run: Run) -> ReportResult:
        """Read it, compare, and write the document."""
        from hfbench.compare.comparing import compare_subjects
        from hfbench.compare.reading import read_subject, source_of
        from hfbench.compare.rows import rows_of
        from hfbench.reports.build import build
        from hfbench.reports.render import BY_SUFFIX, SUFFIXES, render
        from hfbench.reports.written import is_file, is_stdout, write_report

        by_name = BY_SUFFIX.get(self.out.suffix.lower(), "md") if self.out else "md"
        format = by_name if self.format == "auto" else self.format
        subject = read_subject(self.subject)
        others = [read_subject(each) for each in self.against]
        if self.fail_if and not others and not rows_of(subject):
            raise UsageError("--fail-if compares, and there is nothing to compare with", remedy="give --against too")
        sources = [source_of(each) for each in (self.subject, *self.against)]
        sides = [subject, *others] if others or rows_of(subject) else []
        comparison = compare_subjects(sides, fail_if=self.fail_if) if sides else None
        document = build(subject, comparison, told=_lines_of, command=_command_of)
        text = render(format, document, subject, comparison)
        told = ReportResult(
            format=format, title=document.title, bytes=len(text.encode()), text=text, notes=document.warnings
        )
        out = self.out or (run.artifacts / f"report{SUFFIXES[format]}" if run.directory else None)
        if out is None or is_stdout(out):
            return told
        write_report(out, text, sources=sources)
        if is_file(out):
            run.artifact(out, f"{format} report")
        return replace(told, file=str(out), text="")


def _lines_of(measured: Measured) -> list[str]:
    """A result as its own action tells it."""
    from hfbench.actions.registry import look_up
    from hfbench.actions.render import field_lines, result_lines

    spec, result = look_up(measured.action), measured.result or {}
    return result_lines(spec, result, width=LINES_OF_A_RESULT) if spec else field_lines(result)


def _command_of(measured: Measured) -> str:
    """The command that runs an action again; empty where its settings were not kept."""
    from hfbench.actions.registry import look_up

    spec = look_up(measured.action)
    if spec is None or not measured.params:
        return ""
    program = ["hfbench", *(word.replace("_", "-") for word in spec.name.split("."))]
    where = ["--on", measured.on] if measured.on else []
    try:
        known = [each for each in spec.params if each.name in measured.params]
        values = {each.name: each.validate(measured.params[each.name]) for each in known}
    except Problem:  # settings of another version
        return ""
    return shell_line([*shlex.split(command_line(program, spec.params, values)), *where])
