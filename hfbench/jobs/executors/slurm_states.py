"""What `scontrol show job` says of the tasks of an array, as looks of a keeper: states and reasons in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.events import Cancelled, Died, Event, Failed
from hfbench.jobs.executors.base import Look, Phase
from hfbench.jobs.supervise import TookTooLong

WAITING = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD")
SUSPENDED = "SUSPENDED"
RUNNING = ("RUNNING", "COMPLETING", "CONFIGURING", SUSPENDED, "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")
LEAVING = "COMPLETING"
"""Also said of a task that is to begin again, while what its node had of it is cleared away."""
NULL = ("", "(null)", "None", "N/A", "Unknown")
REASONS = {
    "None": "waits to be scheduled",
    "Resources": "waits for free resources",
    "Priority": "other jobs go before it",
    "BeginTime": "its time has not come: after a requeue Slurm waits two minutes",
    "Dependency": "waits for another job",
    "PartitionDown": "its partition is down",
    "PartitionConfig": "its partition cannot give what it asks for now",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "nodes of its partition are down, or it wants more than there are",
    "JobHeldAdmin": "held by an administrator, who alone can release it",
    "Licenses": "waits for a licence",
    "Reservation": "waits for its reservation",
    "NodeDown": "a node it needs is down",
    "Prolog": "its prolog runs",
}
NEVER = {
    "PartitionTimeLimit": "its time limit is above that of the partition, so that it would never begin",
    "BadConstraints": "its constraints can never be met",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its quality of service is not valid",
}
"""Reasons for which Slurm lets a job wait for ever."""


class NeverBegins(UsageError):
    """Slurm holds a job that it will never start."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of an array as scontrol tells it."""

    name: str
    """`17_0`."""
    state: str
    reason: str
    node: str
    restarts: int
    code: int
    signal: int
    preempted: bool
    limit: str


def read_tasks(text: str) -> Iterator[Task]:
    """The tasks of `scontrol -o show job`; one line of waiting ones may stand for many."""
    for line in text.splitlines():
        told = _first_of_each(line)
        array, tasks = told.get("ArrayJobId"), told.get("ArrayTaskId", "")
        code, _, signal = told.get("ExitCode", "").partition(":")
        for number in _numbers(tasks):
            yield Task(
                name=f"{array}_{number}",
                state=told.get("JobState", ""),
                reason=told.get("Reason", ""),
                node=next((told[key] for key in ("BatchHost", "NodeList") if told.get(key, "") not in NULL), ""),
                restarts=_count(told.get("Restarts", "")),
                code=_count(code),
                signal=_count(signal),
                preempted=told.get("PreemptTime", "") not in NULL,
                limit=told.get("TimeLimit", ""),
            )


def look_of(task: Task, *, down: Mapping[str, str], node_before: str, begun: int) -> Look:
    """What a keeper makes of a task; `down` has the nodes that Slurm lost, with what it says of them, `begun` is the
    latest attempt whose worker has begun.
    """
    if task.state in WAITING or (task.state == LEAVING and task.restarts > begun):
        why = _why_again(task, down, node_before) if task.restarts and node_before else in_words(task)
        return Look(phase=Phase.WAITING, reason=why, attempt=task.restarts)
    if task.state in RUNNING:
        again = _why_again(task, down, node_before) if node_before else ""
        return Look(
            phase=Phase.RUNNING, node=task.node, reason=again, attempt=task.restarts, halted=_why_it_stands_still(task)
        )
    return Look(phase=Phase.ENDED, node=task.node, attempt=task.restarts, end=last_event(task))


def in_words(task: Task) -> str:
    """Why a task waits."""
    if task.reason == "JobHeldUser":
        return f"held by its user: scontrol release {task.name} lets it go"
    if task.state in ("REQUEUE_HOLD", "SPECIAL_EXIT") or "held" in task.reason:
        said = _spaced(task.reason)
        return f"begun again and held ({said}): scontrol release {task.name} lets it go"
    if task.reason.startswith("ReqNodeNotAvail"):
        return f"a node it needs is not available ({_spaced(task.reason.partition(',')[2]) or 'reserved or down'})"
    return REASONS.get(task.reason, _spaced(task.reason))


def never(task: Task) -> HfbenchError | None:
    """Why a waiting task will never begin; None where it may."""
    if task.state not in WAITING or task.reason not in NEVER:
        return None
    remedy = f"ask for less than {task.limit}" if task.reason == "PartitionTimeLimit" else "change what is asked for"
    return NeverBegins(NEVER[task.reason], where=f"slurm job {task.name}", remedy=remedy)


def last_event(task: Task) -> Event:
    """The last event of a task whose worker wrote none."""
    on = f" on node {task.node}" if task.node else ""
    match task.state:
        case "TIMEOUT":
            found = f"ran longer than Slurm's time limit of {task.limit} and was stopped"
            return Failed(error=TookTooLong(found, where=task.name, remedy="raise its time").parts())
        case "CANCELLED":
            return Cancelled(reason=f"cancelled in Slurm, outside hfbench (job {task.name})")
        case "NODE_FAIL" | "BOOT_FAIL":
            return Died(reason=f"node {task.node or '?'} was lost ({task.state})")
        case "PREEMPTED":
            return Died(reason=f"gave way to a job that goes before it{on} (PREEMPTED)")
        case "OUT_OF_MEMORY":
            return Died(reason=f"killed{on}: it used more memory than Slurm gave it; ask for more with memory")
        case "DEADLINE":
            return Died(reason="its deadline came before it could end (DEADLINE)")
    if task.signal:
        return Died(reason=f"killed by signal {task.signal}{on}", status=128 + task.signal)
    if task.code:
        return Died(reason=f"the worker exited with status {task.code}{on} and left no word", status=task.code)
    return Died(reason=f"Slurm calls it {task.state or 'ended'}{on}, and its worker left no word")


def _why_it_stands_still(task: Task) -> str:
    """Why a task that has begun does nothing; empty for one that works."""
    if task.state != SUSPENDED:
        return ""
    lets_go = f"scontrol resume {task.name} lets it go on"
    return f"suspended in Slurm, by somebody or for a job that goes before it: {lets_go}"


def _why_again(task: Task, down: Mapping[str, str], node: str) -> str:
    if node in down:
        return f"node {node} was lost ({down[node]})"
    if task.preempted:
        return f"it gave way to a job that goes before it on node {node}"
    return f"Slurm took it from node {node}: for a job that goes before it, or because somebody requeued it"


def _spaced(reason: str) -> str:
    return reason.replace("_", " ").strip()


def _first_of_each(line: str) -> dict[str, str]:
    """The words KEY=VALUE of a line. What users may have written comes late in it: the first of each key counts."""
    found: dict[str, str] = {}
    for key, value in re.findall(r"(?:^|\s)([A-Za-z/:]+)=(\S*)", line):
        found.setdefault(key, value)
    return found


def _numbers(tasks: str) -> Iterator[int]:
    """The numbers of `0-3,7%2` or `0-6:2`."""
    for part in tasks.partition("%")[0].split(","):
        ends, _, step = part.partition(":")
        low, dash, high = ends.partition("-")
        if low.isdecimal() and (high.isdecimal() or not dash):
            yield from range(int(low), int(high or low) + 1, max(1, _count(step)))


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0
