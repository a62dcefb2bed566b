"""A report of a job, a sweep or a script's results, with a comparison where there is one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import hfbench
from hfbench.compare.metrics import metrics_of
from hfbench.compare.result import CompareResult
from hfbench.compare.subject import Measured, Subject
from hfbench.jobs.doubt import SIGN, verdicts_in
from hfbench.models.problem import counted
from hfbench.reports.best import best_of, in_doubt
from hfbench.reports.cells import cells_sections, chief_metrics, words_of
from hfbench.reports.comparison import comparison_sections
from hfbench.reports.document import Document, Figure, Section
from hfbench.reports.single import single_sections
from hfbench.reports.surroundings import environment_section, expectations_section, method_section, reproduce_section
from hfbench.text import printable
from hfbench.units import show_elapsed, show_value

Told = Callable[[Measured], Sequence[str]]
"""The lines of a result for people, where its action is known."""
Command = Callable[[Measured], str]
"""The command that runs an action again."""


def build(subject: Subject, comparison: CompareResult | None, *, told: Told, command: Command) -> Document:
    """The report. A result without metrics is shown by the lines its own action gives."""
    single = len(subject.measured) == 1
    sections: list[Section] = []
    if comparison is not None:
        sections += comparison_sections(comparison)
    sections += single_sections(subject.measured[0], told) if single else cells_sections(subject)
    sections += filter(None, [expectations_section(subject), environment_section(subject), method_section(subject)])
    sections.append(reproduce_section(subject, command))
    return Document(
        title=_title(subject),
        subtitle=_subtitle(subject),
        made=time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        figures=tuple(_figures(subject)),
        warnings=tuple(_warnings(subject)),
        sections=tuple(each for each in sections if each.blocks),
        footer=f"Made by hfbench {hfbench.__version__}",
    )


def _title(subject: Subject) -> str:
    if subject.kind in ("sweep", "script", "baseline"):
        return printable(subject.name)
    action = ", ".join(subject.actions)
    models = ", ".join(each.rstrip("/").rpartition("/")[2] for each in subject.models)
    return printable(f"{action} of {models}" if models else action)


def _subtitle(subject: Subject) -> str:
    kind = {"script": "script results", "file": "result file"}.get(subject.kind, subject.kind)
    parts = [f"{kind} {subject.name}"]
    if subject.kind in ("sweep", "script"):
        parts += [", ".join(subject.actions), ", ".join(subject.models)]
        parts.append(counted(subject.cells, "cell"))
    return printable("; ".join(filter(None, parts)))


def _figures(subject: Subject) -> list[Figure]:
    """The few numbers that stand first: medians of one run, the best of several."""
    found, words = [], words_of(subject)
    for name in chief_metrics(subject)[:4]:
        measured = [(each, metrics_of(each.result).get(name)) for each in subject.measured]
        known = [(each, metric) for each, metric in measured if metric is not None]
        if not known:
            continue
        pick = max if known[0][1].better == "higher" else min
        best, metric = pick(known, key=lambda pair: pair[1].statistic("p50") or 0.0)
        doubtful = in_doubt(metric, verdicts_in(best.result))
        value = show_value(metric.statistic("p50") or 0.0, metric.unit) + (SIGN if doubtful else "")
        lead = best_of((each for _, each in known), words)
        word = f"{lead.word if lead else 'median'}{', in doubt' if doubtful else ''}"
        note = word if len(subject.measured) == 1 else f"{word}: {best.place or best.action}"
        found.append(Figure(name=printable(name), value=value, note=printable(note)))
    seconds = sum(each.seconds or 0.0 for each in subject.measured)
    if seconds and len(found) < 4:
        found.append(
            Figure(name="time", value=show_elapsed(seconds), note="of all steps" if len(subject.measured) > 1 else "")
        )
    return found


def _warnings(subject: Subject) -> list[str]:
    """What a reader must know before the figures."""
    told = list(subject.notes)
    without = [each for each in subject.measured if each.result is None]
    if len(subject.measured) == 1 and without:
        told.append(f"there is no result: {without[0].reason or without[0].state}")
    elif without:
        told.append(f"{len(without)} of {counted(len(subject.measured), 'step')} have no result; the table says why")
    return [printable(each) for each in told]
