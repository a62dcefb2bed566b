"""Makes the checks one after another; one that does not answer in its time is left alone and told as unknown."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence

from hfbench.doctor.check import Check, Outcome, all_checks, unknown
from hfbench.doctor.result import CheckReport, DoctorReport
from hfbench.doctor.system import System
from hfbench.errors import UsageError
from hfbench.text import did_you_mean, printable
from hfbench.units import show_seconds


def examine(
    system: System,
    checks: Sequence[Check],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> DoctorReport:
    """The reports of these checks in their order. Never raises for what a check meets."""
    began = time.monotonic()
    reports = []
    for number, each in enumerate(checks):
        progress(number, len(checks))
        reports.append(report_of(each, system))
    progress(len(checks), len(checks))
    asked = len(system.__dict__.get("pythons", ()))  # only where a check looked at them
    return DoctorReport(
        checks=tuple(reports),
        host=socket.gethostname(),
        seconds=round(time.monotonic() - began, 3),
        environments=max(0, asked - 1),
    )


def report_of(check: Check, system: System) -> CheckReport:
    """What one check finds, made in a thread that is not waited for beyond the check's time."""
    began = time.monotonic()
    told: list[Outcome] = []
    thread = threading.Thread(target=lambda: told.append(_guarded(check, system)), name=check.id, daemon=True)
    thread.start()
    thread.join(check.limit)
    outcome = told[0] if told else _late(check)
    return CheckReport(
        id=check.id,
        topic=check.topic,
        title=check.title,
        verdict=outcome.verdict,
        found=outcome.found,
        evidence=outcome.evidence,
        remedy=outcome.remedy,
        why=check.why,
        seconds=round(time.monotonic() - began, 4),
    )


def chosen(topics: Sequence[str], only: Sequence[str]) -> tuple[Check, ...]:
    """The checks of these topics, or those of these ids; all where none is named. UsageError offers the nearest."""
    known = all_checks()
    names = {each.topic for each in known}
    for topic in topics:
        if topic not in names:
            remedy = did_you_mean(topic, names) or f"topics are {', '.join(dict.fromkeys(e.topic for e in known))}"
            raise UsageError(f"{topic!r} is no topic of the doctor", remedy=remedy)
    for id in only:
        if id not in {each.id for each in known}:
            raise UsageError(f"{id!r} is no check of the doctor", remedy=_nearest(id, known))
    if not topics and not only:
        return known
    return tuple(each for each in known if each.topic in topics or each.id in only)


def _nearest(id: str, known: Sequence[Check]) -> str:
    """What to give in place of an id that is none: a topic, the id whose end was meant, or where all ids are told."""
    if id in {each.topic for each in known}:
        return f"it is a topic: hfbench doctor {id}"
    ends = {each.id.partition(".")[2]: each.id for each in known}
    by_end = did_you_mean(ends[id], [ends[id]]) if id in ends else ""
    return did_you_mean(id, [each.id for each in known]) or by_end or "hfbench doctor --json tells the ids of all"


def _guarded(check: Check, system: System) -> Outcome:
    """What it finds; a fault of the check itself is told as one."""
    try:
        return check.look(system)
    except Exception as trouble:  # a machine may answer anything: the other checks are made all the same
        told = printable(f"{type(trouble).__name__}: {trouble}")
        return unknown(f"the check met what it does not know: {told}")


def _late(check: Check) -> Outcome:
    return unknown(
        f"no answer within {show_seconds(check.limit)}",
        remedy="a disk of the network or a driver hangs: see which with `cat /proc/mounts` and `dmesg`",
    )
