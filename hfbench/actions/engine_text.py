"""Engines for people: the verdict first, then what does not fit, then what does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hfbench.engines.checked import Checked
from hfbench.engines.compatibility.rule import Row
from hfbench.errors import begun
from hfbench.line_width import cut, paragraph
from hfbench.text import printable
from hfbench.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from hfbench.actions.engine_check import CheckResult
    from hfbench.actions.engine_list import ListResult
    from hfbench.engines.listing import Listed

LABEL = 17

SIGNS = {"mismatch": "x", "unknown": "?", "noted": "~", "ok": "."}
ORDER = tuple(SIGNS)
SHOWN_LOG = 6


def check_lines(result: CheckResult) -> list[str]:
    """The verdict, the engine, every rule that does not fit with its remedy, those that do in one line, the trial."""
    rows = sorted(result.rules, key=lambda row: ORDER.index(row.status))
    told = [line for row in rows if row.status != "ok" for line in _rule_lines(row)]
    fits = [row.id for row in rows if row.status == "ok"]
    good = paragraph(f". fits: {', '.join(fits)}", later="  ") if fits else []
    return [
        printable(result.headline),
        *_identity(result),
        *([""] if told else []),
        *told,
        *([""] if good else []),
        *good,
        *_reasons(result),
        *_trial(result),
    ]


def list_lines(result: ListResult) -> list[str]:
    """A row an engine, below it what is decisive, and a line that counts them."""
    rows = [line for each in result.engines for line in _listed_lines(each)]
    lost = [line for each in result.unread for line in paragraph(f"x {printable(each.sentence)}", later="  ")]
    where = f" in {', '.join(result.roots)}: hfbench engine build MODEL --out DIR builds one"
    last = result.headline if rows or lost else result.headline + printable(where)
    return [*rows, *lost, *([""] if rows or lost else []), *paragraph(last)]


def _identity(result: Checked) -> Iterator[str]:
    yield _labelled("engine", result.engine)
    size = f", {show_bytes(result.bytes)}" if result.bytes else ""
    yield _labelled("kind", f"{result.what}{size}" + (f", id {result.id}, recipe {result.recipe}" if result.id else ""))
    if result.built:
        yield _labelled("built", result.built)
    for fact in result.facts:
        yield _labelled(fact.label, fact.value)
    if result.manifest:
        yield _labelled("proof", result.proof)
    yield _labelled("device", result.device)
    if result.environment:
        yield _labelled("environment", result.environment)
    if result.python:
        yield from paragraph(printable(result.python), first=f"{'for':<{LABEL}}", later=" " * LABEL)


def _rule_lines(row: Row) -> Iterator[str]:
    remedy = f". {begun(row.remedy)}" if row.remedy else ""
    yield from paragraph(f"{SIGNS[row.status]} {row.id}: {printable(row.found)}{printable(remedy)}", later="  ")
    if row.built and row.here and row.status != "unknown":
        yield from paragraph(f"built {printable(row.built)}, here {printable(row.here)}", first="    ", later="    ")


def _reasons(result: Checked) -> Iterator[str]:
    for reason in result.reasons:
        sign = "x" if reason.fatal else "~"
        yield from paragraph(f"{sign} log: {printable(reason.found)}. {begun(printable(reason.remedy))}", later="  ")


def _trial(result: Checked) -> Iterator[str]:
    trial = result.trial
    if trial is None:
        return
    yield ""
    took = f" after {show_seconds(trial.seconds)}" if trial.seconds else ""
    yield f"trial load: {trial.outcome}{took}"
    remedy = f". {begun(trial.remedy)}" if trial.remedy else ""
    yield from paragraph(f"{printable(trial.found)}{printable(remedy)}", first="  ", later="  ")
    for reason in trial.reasons:
        if reason.found not in trial.found:
            yield from paragraph(f"~ {printable(reason.found)}", first="  ", later="    ")
    if trial.outcome not in ("loaded", "could not") and not any(reason.fatal for reason in trial.reasons):
        yield from (f"  | {cut(printable(line), 4)}" for line in trial.log[-SHOWN_LOG:])


def _listed_lines(listed: Listed) -> Iterator[str]:
    checked = listed.checked
    kind = f"{checked.kind:<9}{show_bytes(checked.bytes):>9}" if checked else f"{'':<18}"
    yield f"{listed.verdict:<14}{kind}  {cut(printable(listed.path), 34)}"
    if checked is None:
        yield from paragraph(f"x {printable(listed.trouble)}", first="  ", later="    ")
        return
    for row in checked.rules:
        if row.status == "mismatch":
            yield from paragraph(f"x {row.id}: {printable(row.found)}", first="  ", later="    ")


def _labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{cut(printable(text), LABEL)}".rstrip()
