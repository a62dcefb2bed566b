"""Checks of the machine and its Pythons as rows of a table, and one of them as lines; no widget, no reading here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.units import show_ago, show_seconds
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

if TYPE_CHECKING:
    from hfbench.actions.environments import KnownEnvironment
    from hfbench.doctor.result import CheckReport

STATES: Mapping[str, State] = {"ok": "ok", "warning": "warn", "error": "error", "unknown": "unknown"}
ENVIRONMENT = "environment:"
"""Begins the key of a row that is a Python and no check."""
TELLING = ("torch", "tensorrt-llm", "vllm", "sglang", "onnxruntime", "openvino", "transformers", "megatron-core")
"""Packages named in a row, as many as there is room for."""

COLUMNS = (
    Column("verdict", "Verdict", min=9),
    Column("topic", "Topic", priority=1),
    Column("check", "Check", flexible=True, min=14, max=22),
    Column("found", "Found", flexible=True, min=24, max=200),
)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of the machine: reports by id, Pythons by name, when all of it was looked at last."""

    checks: Mapping[str, CheckReport]
    environments: Mapping[str, KnownEnvironment]
    at: float | None = None

    @property
    def headline(self) -> str:
        """`1 error, 3 warnings, 41 ok`; empty before anything is known."""
        from hfbench.doctor.result import DoctorReport

        return DoctorReport(checks=tuple(self.checks.values()), host="", seconds=0.0).headline


def records_of(known: Known, pending: frozenset[str], glyphs: Glyphs, *, only_trouble: bool) -> list[Record]:
    """A row a check in the order of the topics, then one a Python; those of `pending` keys or topics say so."""
    rows = [_check_record(each, _waits(each, pending), glyphs) for each in known.checks.values()]
    rows += [_environment_record(each, ENVIRONMENT in pending, glyphs) for each in known.environments.values()]
    return [row for row in rows if not only_trouble or row.states["verdict"] != "ok"]


def detail_lines(known: Known, key: str, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """All that is known of a row."""
    if key.startswith(ENVIRONMENT):
        environment = known.environments.get(key.removeprefix(ENVIRONMENT))
        return facts_lines([*_environment_facts(environment)], width, glyphs) if environment else []
    report = known.checks.get(key)
    return facts_lines([*_check_facts(report)], width, glyphs) if report else []


def age_of(known: Known, now: float) -> str:
    """`looked at 5 min ago`; empty when all of it never was."""
    return f"looked at {show_ago(now - known.at)}" if known.at is not None else ""


def _waits(report: CheckReport, pending: frozenset[str]) -> bool:
    return report.topic in pending or report.id in pending


def _check_record(report: CheckReport, waits: bool, glyphs: Glyphs) -> Record:
    state = STATES[report.verdict]
    cells = {
        "verdict": _said(report.verdict, state, glyphs, waits=waits),
        "topic": report.topic,
        "check": report.title,
        "found": report.found,
    }
    states: dict[str, State] = {"verdict": state, "topic": "muted", "found": "muted" if waits else ""}
    return Record(report.id, cells, states=states)


def _environment_record(each: KnownEnvironment, waits: bool, glyphs: Glyphs) -> Record:
    state = _state_of(each)
    cells = {
        "verdict": _said("error" if each.trouble else "ok", state, glyphs, waits=waits),
        "topic": "Python",
        "check": each.name,
        "found": each.trouble or ", ".join([f"Python {each.python}", *_versions(each.versions, TELLING), _runs(each)]),
    }
    states: dict[str, State] = {"verdict": state, "topic": "muted", "found": "muted" if waits else ""}
    return Record(f"{ENVIRONMENT}{each.name}", cells, states=states)


def _said(verdict: str, state: State, glyphs: Glyphs, *, waits: bool) -> str:
    """Sign and word; what is looked at again keeps its last verdict, with a sign that it is not the newest."""
    sign = glyphs.sign(state)
    word = sign if sign == verdict else f"{sign} {verdict}"
    return f"{word} ..." if waits else word


def _state_of(each: KnownEnvironment) -> State:
    return "error" if each.trouble else "ok"


def _versions(versions: Mapping[str, str], names: Sequence[str]) -> list[str]:
    return [f"{name} {versions[name]}" for name in names if name in versions]


def _runs(each: KnownEnvironment) -> str:
    needing = len(each.runs) + len(each.cannot_run)
    return f"runs {len(each.runs)} of {needing} actions that need packages"


def _check_facts(report: CheckReport) -> Iterator[Fact]:
    yield Fact(report.topic, report.title)
    yield Fact("found", report.found, STATES[report.verdict])
    if report.remedy:
        yield Fact("do", report.remedy)
    if report.why:
        yield Fact("why", report.why)
    for number, each in enumerate(report.evidence):
        yield Fact("" if number else "seen", f"{each.where}: {each.read}", "muted")
    yield Fact("id", f"{report.id}, took {show_seconds(report.seconds)}", "muted")


def _environment_facts(each: KnownEnvironment) -> Iterator[Fact]:
    yield Fact("Python", each.name)
    yield Fact("found", each.trouble or "answers", _state_of(each))
    yield Fact("started by", " ".join(each.command), "muted")
    if not each.python:
        return
    yield Fact("version", f"{each.python}, {each.machine}, glibc {each.glibc}".removesuffix(", glibc "))
    for name, version in each.versions.items():
        yield Fact(name, version)
    if torch := each.torch:
        built = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "the CPU alone"
        yield Fact("torch is for", ", ".join(filter(None, (built, " ".join(torch.arch_list)))))
    yield Fact("runs", ", ".join(each.runs) or "only what needs no package")
    by_lack: dict[str, list[str]] = {}
    for name, lack in each.cannot_run.items():
        by_lack.setdefault(lack, []).append(name)
    for number, (lack, names) in enumerate(by_lack.items()):
        yield Fact("" if number else "does not run", f"{', '.join(names)}: {lack}")
