"""Finds what can be known of a failure or of a process: from jobs, snapshots, logs and the driver."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hfbench.codec import decode
from hfbench.errors import HfbenchError, UsageError
from hfbench.gpu.explain.picture import Explanation, MemoryPicture, merged
from hfbench.gpu.explain.reading import device_picture, devices_of, unread
from hfbench.gpu.explain.result import ExplainResult
from hfbench.gpu.explain.rules import explain
from hfbench.gpu.explain.segments import Snapshot
from hfbench.gpu.explain.sentence import LONGEST, OomSentence, parse_oom
from hfbench.gpu.explain.snapshot_file import read_snapshot
from hfbench.gpu.explain.statistics import LARGEST_FREE
from hfbench.gpu.explain.witness import EXPLANATION, SNAPSHOT
from hfbench.gpu.telemetry import GpuSnapshot
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Failed, Metric
from hfbench.jobs.files import read_regular
from hfbench.jobs.tail import log_tail, read_events

MOST_EXPLANATION = 2**20
OF_METRICS = {
    "torch.allocated": "allocated",
    "torch.reserved": "reserved",
    "torch.reserved_peak": "reserved_peak",
    "torch.inactive_split": "inactive_split",
    LARGEST_FREE: "largest_free",
}
"""Metrics of a job and the parts of a picture they tell, by their last value."""
LOG_LINES = 2000


def explain_job(job: JobDirectory) -> ExplainResult:
    """What a job wrote when memory ran out; else what its error, its log and its metrics tell."""
    events = read_events(job)
    metrics = [each for each in events if isinstance(each, Metric)]
    if (written := _written(job)) is not None:
        sampled = MemoryPicture(sampled_peak=_of_metrics(metrics).sampled_peak)  # the worker does not read its samples
        picture = merged([written.picture, sampled])
        return ExplainResult(explanations=(explain(picture, sources=written.sources, notes=written.notes),))
    ended = [each for each in events if isinstance(each, Failed)]
    texts = [f"{each.error.get('found', '')}\n{each.traceback}" for each in ended]
    said = next((found for text in texts if (found := parse_oom(text))), None)
    if said is None and (ended or not job.alive()):
        said = parse_oom("\n".join(log_tail(job, LOG_LINES, LONGEST)))
    pictures = [_of_metrics(metrics)]
    sources = ["metrics of the job"] if pictures[0] != MemoryPicture() else []
    if said is not None:
        pictures.insert(0, said.picture())
        sources.insert(0, f"error of {said.outside or said.wording}")
    snapshot = job.path / "artifacts" / SNAPSHOT
    if snapshot.is_file():
        read = read_snapshot(snapshot)
        pictures += [read.picture(device, said.request if said else None) for device in read.devices[:1]]
        sources.append("segments of the allocator")
    if not sources:
        return ExplainResult(explanations=(), reason=f"{job.short_id}: nothing it wrote tells of device memory")
    return ExplainResult(explanations=(explain(merged(pictures), sources=tuple(sources)),))


def explain_file(path: Path) -> ExplainResult:
    """Every device of a snapshot that torch or hfbench wrote."""
    snapshot = read_snapshot(path)
    if not snapshot.devices:
        return ExplainResult(explanations=(), reason=f"{path}: no segment, torch held no device memory")
    return ExplainResult(explanations=tuple(_of_snapshot(snapshot, device) for device in snapshot.devices))


def explain_text(path: Path) -> ExplainResult:
    """The last sentence of a log that says memory ran out."""
    try:
        if path.exists() and not path.is_file():
            raise HfbenchError("is not a file", where=path)
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 4 * LONGEST))
            text = file.read(4 * LONGEST).decode("utf-8", "replace")
    except OSError as error:
        raise HfbenchError(error.strerror or "cannot be read", where=path) from error
    said = parse_oom(text)
    if said is None:
        return ExplainResult(explanations=(), reason=f"{path}: no sentence says that device memory ran out")
    return ExplainResult(explanations=(_of_sentence(said),))


def explain_process(snapshot: GpuSnapshot, pid: int, job: JobDirectory | None = None) -> ExplainResult:
    """A process on each device it holds memory of, with what its job last reported, if it works for one."""
    devices = devices_of(snapshot, pid)
    if not devices:
        why = snapshot.reason or f"no device lists process {pid}"
        raise UsageError(why, where=f"pid {pid}", remedy="hfbench gpus shows who holds memory")
    told = _of_metrics([each for each in read_events(job) if isinstance(each, Metric)]) if job else MemoryPicture()
    sources = ("driver (NVML)", *(("metrics of the job",) if told != MemoryPicture() else ()))
    pictures = [merged([device_picture(device, pid), told]) for device in devices]
    notes = () if told != MemoryPicture() else ("what torch reserved is known to its own process only",)
    return ExplainResult(explanations=tuple(explain(each, sources=sources, notes=notes) for each in pictures))


def explain_now(snapshot: GpuSnapshot) -> ExplainResult:
    """Every device as the driver counts it."""
    return ExplainResult(
        explanations=tuple(
            explain(device_picture(device), sources=("driver (NVML)",), notes=unread(device))
            for device in snapshot.devices
        ),
        reason="" if snapshot.devices else snapshot.reason,
    )


def _written(job: JobDirectory) -> Explanation | None:
    try:
        data = json.loads(read_regular(job.path / "artifacts" / EXPLANATION, MOST_EXPLANATION))
        return decode(Explanation, data)
    except (OSError, ValueError, TypeError, RecursionError):
        return None  # not there, or of another version: the events are


def _of_metrics(metrics: list[Metric]) -> MemoryPicture:
    """The last value of each metric, and the most that samples of the card saw."""
    last = {each.name: each.value for each in metrics}
    parts = {part: int(last[name]) for name, part in OF_METRICS.items() if name in last}
    sampled = [each.value for each in metrics if each.name == "gpu.memory"]
    return replace(MemoryPicture(**parts), sampled_peak=int(max(sampled)) if sampled else None)  # type: ignore[arg-type]


def _of_snapshot(snapshot: Snapshot, device: int) -> Explanation:
    return explain(snapshot.picture(device), sources=("segments of the allocator",), notes=snapshot.notes)


def _of_sentence(said: OomSentence) -> Explanation:
    return explain(said.picture(), sources=(f"error of {said.outside or said.wording}",))
