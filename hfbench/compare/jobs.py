"""Jobs as something measured: read whole, whatever state they are in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hfbench.compare.subject import Measured, Subject
from hfbench.jobs.directory import ID, JobDirectory
from hfbench.jobs.snapshot import JobSnapshot, State, read_job
from hfbench.models.identity import folder_identity, identity
from hfbench.paths import jobs_root


def job_subject(job: JobDirectory, given: str) -> Subject:
    """A job by itself, whatever state it is in."""
    snapshot = read_job(job)
    return Subject(
        given=given,
        kind="job",
        name=job.id,
        state=str(snapshot.state),
        made=snapshot.created,
        measured=(measured_of(job, snapshot),),
        hfbench=str(job.request.get("hfbench") or ""),
        notes=(job.newer,) if job.newer else (),
    )


def measured_of(
    job: JobDirectory, snapshot: JobSnapshot, *, values: Mapping[str, Any] | None = None, step: str = ""
) -> Measured:
    """A job as something measured, at its place in a sweep."""
    finished = snapshot.state is State.FINISHED
    lacking = "its result is gone or damaged" if finished and snapshot.result is None else ""
    return Measured(
        values=dict(values or {}),
        step=step,
        action=snapshot.action,
        params=snapshot.params,
        result=snapshot.result,
        environment=job.read("environment.json") or {},
        state=str(snapshot.state),
        reason=lacking or snapshot.sentence() or ("" if snapshot.state.over else f"the job is {snapshot.state}"),
        job=job.id,
        on=str(job.request.get("on") or ""),
        created=snapshot.created,
        seconds=snapshot.elapsed() if snapshot.state.over else None,
        led_to=led_to(snapshot.params, snapshot.result, str(job.request.get("cwd") or "")),
    )


def led_to(params: Mapping[str, Any], result: Mapping[str, Any] | None, cwd: str = "") -> str:
    """What the model of a run led to: as its result tells, else as its reference leads today; empty without a model."""
    folder, model = (result or {}).get("folder"), params.get("model")
    if isinstance(folder, str) and os.path.isabs(path := os.path.join(cwd, folder)):
        return folder_identity(path)
    return identity(model, cwd) if isinstance(model, str) and model else ""


def local_job(job_id: object) -> JobDirectory | None:
    """The job of an id where its folder is still here."""
    if not isinstance(job_id, str) or not ID.fullmatch(job_id):
        return None
    job = JobDirectory(jobs_root() / job_id)
    return job if job.request else None
