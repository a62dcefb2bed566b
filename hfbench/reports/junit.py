"""A report as JUnit XML, which CI systems read: a case a step, an expectation, a condition."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from hfbench.codec import encode
from hfbench.compare.doubts import against
from hfbench.compare.result import CompareResult, Outcome
from hfbench.compare.subject import Measured, Subject, cell_label
from hfbench.text import printable

FAILED = ("failed", "timeout")
ERRORS = ("died", "cancelled")
LAST_DAY = 253402300800.0
"""The year 10000, in seconds since the epoch: the form of a time stamp has four digits for the year."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test case: `outcome` is empty when it passed, else `failure`, `error` or `skipped`."""

    group: str
    name: str
    seconds: float = 0.0
    outcome: str = ""
    message: str = ""
    kind: str = ""
    output: tuple[str, ...] = ()
    """Lines."""


def junit(subject: Subject, comparison: CompareResult | None) -> str:
    """The document; times are in seconds, and what was not asked is skipped."""
    asked = _conditions("hfbench.compare", encode(comparison)) if comparison else ()
    cases = [*_steps(subject), *_gates(subject), *_expectations(subject), *asked]
    counted = {word: str(sum(case.outcome == word for case in cases)) for word in ("failure", "error", "skipped")}
    totals = {
        "tests": str(len(cases)),
        "failures": counted["failure"],
        "errors": counted["error"],
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": "hfbench", **totals})
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", _made(subject))
    host = next((str(each.environment.get("host")) for each in subject.measured if each.environment.get("host")), "")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {"name": printable(subject.name), **totals, "skipped": counted["skipped"], "timestamp": stamp}
        | ({"hostname": printable(host)} if host else {}),
    )
    for case in cases:
        _append(suite, case)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _made(subject: Subject) -> time.struct_time:
    """When it was made, in UTC; now, where that is not told or is no time that a calendar has."""
    now = time.time()
    made = now if subject.made is None else subject.made
    return time.gmtime(made if 0 < made < LAST_DAY else now)


def _append(suite: ElementTree.Element, case: Case) -> None:
    told = {"classname": printable(case.group), "name": printable(case.name), "time": f"{case.seconds:.3f}"}
    node = ElementTree.SubElement(suite, "testcase", told)
    if case.outcome:
        kind = {} if case.outcome == "skipped" else {"type": printable(case.kind or case.outcome)}
        inner = ElementTree.SubElement(node, case.outcome, {"message": printable(case.message), **kind})
        if case.outcome != "skipped":
            inner.text = printable(case.message)
    if case.output:
        ElementTree.SubElement(node, "system-out").text = "\n".join(map(printable, case.output))


def _steps(subject: Subject) -> Iterator[Case]:
    for each in subject.measured:
        outcome, message = _of_step(each)
        yield Case(
            group=f"hfbench.{subject.name}.{each.action}",
            name=each.place or each.action,
            seconds=each.seconds or 0.0,
            outcome=outcome,
            message=message,
            kind=each.state,
            output=tuple(_said(each.result or {})),
        )


def _said(result: Mapping[str, Any]) -> Iterator[str]:
    """The figures of a step, and what it says against them."""
    if headline := result.get("headline"):
        yield str(headline)
    yield from (f"verdict {word}: {detail}" for word, detail in against(result).items())
    doubts = result.get("doubts")
    yield from (f"doubt {each}" for each in (doubts if isinstance(doubts, list) else ()))


def _of_step(measured: Measured) -> tuple[str, str]:
    """Outcome and message of a step: one that is not over is skipped, and says so."""
    reason = measured.reason or measured.state
    if measured.state in FAILED:
        return "failure", reason
    if measured.state in ERRORS:
        return "error", reason
    if measured.result is None:
        return "skipped", reason
    if measured.result.get("failed"):
        return "failure", str(measured.result.get("headline") or "the result says that it failed")
    return "", ""


def _expectations(subject: Subject) -> Iterator[Case]:
    outcomes = {True: "", False: "failure", None: "skipped"}
    for each in subject.expectations:
        place = " ".join(filter(None, (cell_label(each.values), each.step)))
        actual = f"it is {each.actual}" if each.actual else ""
        yield Case(
            group=f"hfbench.{subject.name}.expectations",
            name=" ".join(filter(None, (place, each.text))),
            outcome=outcomes[each.ok],
            message="; ".join(filter(None, (each.text, actual, each.reason))),
            kind="expectation",
        )


def _gates(subject: Subject) -> Iterator[Case]:
    """The conditions that steps of a script asked."""
    for each in subject.measured:
        yield from _conditions(f"hfbench.{subject.name}.{each.action}", each.result, place=each.place)


def _conditions(group: str, result: Mapping[str, Any] | None, *, place: str = "") -> Iterator[Case]:
    """A case for each condition of `--fail-if`: one that could not be told is skipped, unless it was to fail then."""
    told = (result or {}).get("conditions")
    outcomes = {str(Outcome.PASSES): "", str(Outcome.FAILS): "failure"}
    open_ends = "failure" if (result or {}).get("strict") else "skipped"
    for each in told if isinstance(told, list) else ():
        if not isinstance(each, Mapping) or "outcome" not in each:
            continue
        outcome, text, details = str(each["outcome"]), str(each.get("text", "")), each.get("details")
        yield Case(
            group=group,
            name=" ".join(filter(None, (place, f"not {text}"))),
            outcome=outcomes.get(outcome, open_ends),
            message="; ".join((f"{outcome}: {text}", *map(str, details if isinstance(details, list) else ()))),
            kind=outcome,
        )
