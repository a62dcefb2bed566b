"""Steps and runtimes as rows of their tables, and a runtime as facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from hfbench.models.runtimes import TITLES, Runtime
from hfbench.screens.model_tabs.told import verdict_facts
from hfbench.screens.model_tabs.verdict_lines import STATES
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_rows import Record

if TYPE_CHECKING:
    from hfbench.actions.resolve import ResolveResult
    from hfbench.actions.runtimes import RuntimesResult
    from hfbench.engines.runtimes.row import Row
    from hfbench.models.resolution.trace import Step

ROW_STATES: Mapping[str, State] = {"ok": "ok", "warning": "warn", "error": "error", "unknown": "unknown"}
SAID = {
    "ok": "carries it out",
    "warning": "carries it out, but",
    "error": "does not carry it out",
    "unknown": "is not known",
}
STARTS = {"bench.generate": "bench", "engine.build": "build", "serve.command": "serve"}


def step_record(number: int, step: Step, glyphs: Glyphs) -> Record:
    """One step of the trace."""
    state = STATES[step.state]
    cells = {
        "number": str(number),
        "state": glyphs.sign(state) or "-",
        "step": step.step,
        "looked": step.looked_at,
        "found": step.found,
        "why": step.why,
    }
    return Record(
        str(number), cells, states={"state": state, "looked": "muted", "why": "muted"}, order={"number": number}
    )


def row_record(row: Row, glyphs: Glyphs) -> Record:
    """One runtime."""
    state = ROW_STATES[row.state]
    cells = {
        "state": glyphs.sign(state),
        "runtime": row.title,
        "starts": STARTS.get(row.action, ""),
        "rules": _rules(row),
        "precision": row.precision.partition(" (")[0],
        "reason": spoken(row),
    }
    return Record(row.runtime, cells, states={"state": state, "rules": "muted", "precision": "muted"})


def row_facts(row: Row, matrix: RuntimesResult, resolution: ResolveResult) -> Iterator[Fact]:
    """Whether and how one runtime carries the model out, on which card, and what starts it."""
    from hfbench.actions.runtimes import launch_told

    yield Fact("here", SAID[row.state], ROW_STATES[row.state])
    verdict = resolution.runtimes.get(row.runtime, {})
    if row.reason not in (verdict.get("reason"), verdict.get("warning")):  # what the verdict below says
        yield Fact("reason", row.reason)
    if row.precision:
        yield Fact("numbers", row.precision)
    known = f", compute capability {matrix.capability}" if matrix.capability else ""
    yield Fact("card", f"{matrix.gpu}{known}{f' ({matrix.note})' if matrix.note else ''}")
    if command := launch_told(row):
        copies = row.launch == "command"
        yield Fact("x", "copies the command, checked" if copies else "opens its form")
        yield Fact("", command)
    if row.runtime in TITLES:
        yield Fact("", "")
        runtime = cast(Runtime, row.runtime)
        yield from verdict_facts(runtime, verdict, resolution.steps)
        return
    if row.version:
        yield Fact("version", f"{row.version}, {row.rules}")
    if row.remote_code:
        yield Fact("remote code", "needed", "warn")
    for number, note in enumerate(row.notes):
        yield Fact("" if number else "notes", note)


def spoken(row: Row) -> str:
    """The reason, without the runtime's name and version where they stand beside it anyway."""
    from hfbench.models.resolution.verdicts import CONFIGURATION_ALONE

    reason = row.reason.replace(CONFIGURATION_ALONE, "")
    if row.runtime in TITLES:
        return reason.removeprefix(f"{TITLES[cast(Runtime, row.runtime)]} {row.version} ")
    return reason


def _rules(row: Row) -> str:
    return row.rules.partition(",")[0]
