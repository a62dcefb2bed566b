"""Runs one action of the command line as a job that is watched or left alone."""

from __future__ import annotations

import argparse
import json

from hfbench.actions.asking import ask
from hfbench.actions.base import Action, Spec
from hfbench.commands.printed import print_result
from hfbench.commands.watch import watch_or_cancel
from hfbench.errors import HfbenchError, error_from_parts
from hfbench.exits import Exit, complain
from hfbench.jobs.cancel import left_to_cancel
from hfbench.jobs.launch import launch
from hfbench.jobs.snapshot import JobSnapshot, State
from hfbench.pages import more_about
from hfbench.paths import jobs_root


def run_as_job(spec: Spec, request: Action, given: argparse.Namespace, timeout: float | None) -> int:
    """Start a job and, unless it is to be left alone, stay until it is over; the exit code."""
    asked = ask(
        spec,
        request,
        runs_in=given.runs_in,
        on=given.on,
        lease=not given.no_lease,
        timeout=timeout,
        label=given.label,
    )
    job = launch(jobs_root(), asked)
    if given.detach:
        print(json.dumps({"job": job.id, "directory": str(job.path)}) if given.json else job.id)
        return Exit.OK
    snapshot, interrupted = watch_or_cancel(job, quiet=given.json)
    code = report_end(spec, snapshot, given.json)
    return Exit.INTERRUPTED if interrupted else code


def report_end(spec: Spec, snapshot: JobSnapshot, as_json: bool) -> int:
    """Print how a job ended and turn it into an exit code."""
    if snapshot.state is State.FINISHED and snapshot.result is not None:
        return print_result(spec, {**snapshot.result, "job": snapshot.id}, as_json)
    if snapshot.error:
        error = error_from_parts(snapshot.error)
    elif left := left_to_cancel(snapshot):
        remedy = f"hfbench jobs wait {snapshot.short_id} tells when it is over"
        error = HfbenchError(left, where=snapshot.id, remedy=remedy)
    else:
        how = "died" if snapshot.state is State.DIED else f"was {snapshot.state}"
        error = HfbenchError(f"the job {how}: {snapshot.sentence() or 'no reason given'}", where=snapshot.id)
    if snapshot.state is State.DIED and not as_json:
        for line in snapshot.tail:
            complain(f"| {line}")
    if as_json:
        told = {"error": error.parts(), "job": snapshot.id, "state": str(snapshot.state)}
        print(json.dumps(told, ensure_ascii=True))
    complain(error)
    if hint := more_about(error.page):
        complain(hint)
    return int(error.exit)
