"""What steps came to, judged by what is expected of them and told as events: the same for scripts and sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hfbench
from hfbench.scripts.expectation import Expectation, Verdict, judge
from hfbench.scripts.lookup import NotThere, look_up
from hfbench.scripts.perform import Outcome, Status
from hfbench.scripts.plan import Plan, PlannedStep
from hfbench.scripts.results import VERSION, condensed

WORDS = {True: "passed", False: "failed", None: "skipped"}
"""What became of an expectation, by its verdict."""


def about(plan: Plan, machine: Mapping[str, Any], *, name: str = "", git: Any = None) -> dict[str, Any]:
    """What a run is, as fields of its first event; `machine` is the fingerprint of where it begins."""
    return {
        "v": VERSION,
        "script": str(plan.file),
        "name": name or plan.name,
        "sha256": plan.sha256,
        "hfbench": hfbench.__version__,
        "host": machine.get("host"),
        "git": git,
        "cells": len(plan.cells),
        "steps": plan.count,
        "environment": machine,
    }


def verdict_on(expectation: Expectation, own: Outcome, saved: Mapping[str, Outcome]) -> Verdict:
    """Judge an expectation by the outcome of its own step, or by that which was saved under the name it begins with."""
    first, *rest = expectation.path
    named = bool(rest) and first in saved
    outcome, path = (saved[first], rest) if named else (own, list(expectation.path))
    who = first if named else "this step"
    if outcome.status is Status.SKIPPED:
        return Verdict(ok=None, reason=f"{who} was skipped")
    if outcome.result is None:
        return Verdict(ok=False, reason=f"{who} has no result: it {outcome.status.past}")
    try:
        return judge(expectation, look_up(outcome.result, path, within=first if named else ""))
    except NotThere as error:
        return Verdict(ok=False, reason=str(error))


def refusal_of(step: PlannedStep, outcome: Outcome) -> Verdict | None:
    """Whether a step failed as it is expected to; None where nothing of the kind is expected."""
    if step.fails is None:
        return None
    if outcome.status is Status.SKIPPED:
        return Verdict(ok=None, reason="this step was skipped")
    if outcome.status is Status.OK:
        return Verdict(ok=False, reason="this step went well")
    sentence = outcome.sentence()
    if not outcome.refusal:
        return Verdict(ok=False, actual=sentence, reason=f"this step did not refuse anything: {sentence}")
    if step.fails.words not in sentence:
        return Verdict(ok=False, actual=sentence, reason=f"it failed otherwise: {sentence}")
    return Verdict(ok=True, actual=sentence)


def told(verdict: Verdict) -> dict[str, Any]:
    """A verdict as fields of an event."""
    return {"actual": condensed(verdict.actual), "unit": verdict.unit, "ok": verdict.ok, "reason": verdict.reason}


def shown(outcome: Outcome) -> dict[str, Any]:
    """An outcome as fields of an event; the metrics of a result stand by themselves."""
    result = dict(outcome.result or {})
    metrics = result.pop("metrics", None) if isinstance(result.get("metrics"), dict) else None
    return {
        "status": str(outcome.status),
        "duration_s": outcome.seconds,
        "metrics": condensed(metrics or outcome.metrics),
        "result": condensed(result) if outcome.result is not None else None,
        "artifacts": outcome.artifacts,
        "job": outcome.job,
        "error": outcome.error,
    }
