"""Slurm: a batch of jobs is one array, whose tasks are workers on nodes that share the jobs folder."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from hfbench.beside import ALONE, OF_OUR_PYTHON, python_path
from hfbench.errors import UsageError
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Failed, Started
from hfbench.jobs.executors.base import Executor, ExecutorTrouble, Kept, Look, Need, Phase
from hfbench.jobs.executors.slurm_client import FORGOTTEN, PATIENCE, Refused, call
from hfbench.jobs.executors.slurm_states import Task, look_of, never, read_tasks
from hfbench.jobs.executors.story import attempt_of
from hfbench.jobs.tail import read_events
from hfbench.text import did_you_mean
from hfbench.units import parse_duration

START = "start.sh"
"""In the folder of a job: what its node runs."""
SHORT = 5.0
"""Seconds for an answer while somebody waits for the launch."""
NOT_YET = "node configuration is not available"
"""Refused in earnest, and also by a slurmctld that has just started and has not heard of its nodes yet."""
AGAIN = (1.0, 2.0)
"""Seconds before each further try then."""
OWN_TIME = re.compile(r"\d+(-\d+)?(:\d+){0,2}|UNLIMITED|INFINITE")
"""A time as Slurm writes it; its bare number is minutes."""


class Slurm(Executor):
    """Jobs of one partition, through sbatch, scontrol and scancel; accounting is not needed."""

    batch: ClassVar[int] = 200
    arbiter: ClassVar[bool] = True

    def refuse(self, needs: Sequence[Need]) -> None:
        with contextlib.suppress(ExecutorTrouble):
            partitions = list(dict.fromkeys(call("sinfo", "-h", "-o", "%R", patience=SHORT).split()))
            if self.where.target and self.where.target not in partitions:
                raise UsageError(
                    f"Slurm has no partition {self.where.target!r}; it has {', '.join(partitions) or 'none'}",
                    where=self.where.text,
                    remedy=did_you_mean(self.where.target, partitions) or "give one of them",
                )
            for gpus in {need.gpus for need in needs}:
                self._try(gpus)

    def submit(self, jobs: Sequence[Kept]) -> Mapping[str, str]:
        token = jobs[0].placement.token
        arrays = call("squeue", "-h", "--states=all", f"--name={token}", "-o", "%F").split()
        ids = {name: name for array in dict.fromkeys(arrays) for name in self._tasks(array)}
        known = {int(name.rpartition("_")[2]): name for name in ids}
        told: dict[str, str] = {}
        fresh: dict[int, list[Kept]] = {}
        for kept in jobs:
            if name := known.get(kept.placement.index):
                told[kept.job.id] = name
            elif any(isinstance(event, Started) for event in read_events(kept.job)):
                told[kept.job.id] = f"{token}_{kept.placement.index}"  # it ran, and Slurm has forgotten it
            else:
                fresh.setdefault(kept.placement.need.gpus, []).append(kept)
        for gpus, group in fresh.items():
            array = self._submit(token, gpus, group)
            told.update({kept.job.id: f"{array}_{kept.placement.index}" for kept in group})
        return told

    def look(self, jobs: Sequence[Kept]) -> Mapping[str, Look]:
        tasks: dict[str, Task] = {}
        for array in {kept.placement.id.partition("_")[0] for kept in jobs if kept.placement.id}:
            tasks.update(self._tasks(array))
        lost = any(task.restarts or task.state == "NODE_FAIL" for task in tasks.values())
        down = self._down() if lost else {}
        return {kept.job.id: self._look(kept, tasks, down) for kept in jobs if kept.placement.id}

    def stop(self, jobs: Sequence[Kept], *, hard: bool) -> None:
        ids = [kept.placement.id for kept in jobs if kept.placement.id]
        ways: tuple[tuple[str, ...], ...] = (
            ("--state=PENDING",),
            ("--state=SUSPENDED",),  # no signal reaches its worker: Slurm lets it go on for that, and kills it in time
            ("--state=RUNNING", "--batch", "--signal=TERM"),
        )
        for words in ((),) if hard else ways:  # the worker on the node gives its work the grace of the job
            with contextlib.suppress(Refused):  # over meanwhile
                call("scancel", "--quiet", *words, *ids)

    def close(self, jobs: Iterable[Kept]) -> None:
        for folder in {_batch_folder(kept) for kept in jobs}:
            shutil.rmtree(folder, ignore_errors=True)

    def _look(self, kept: Kept, tasks: Mapping[str, Task], down: Mapping[str, str]) -> Look:
        placement = kept.placement
        if (task := tasks.get(placement.id)) is None:
            return Look(phase=Phase.LOST, reason=f"Slurm knows no job {placement.id}, and its worker left no word")
        if error := never(task):
            self.stop([kept], hard=True)
            return Look(phase=Phase.ENDED, end=Failed(error=error.parts()))
        before = placement.node if task.restarts > placement.attempt else ""
        return look_of(task, down=down, node_before=before, begun=attempt_of(kept.job))

    def _tasks(self, array: str) -> dict[str, Task]:
        """The tasks of an array that Slurm remembers, by name."""
        try:
            return {task.name: task for task in read_tasks(call("scontrol", "-o", "show", "job", array))}
        except Refused as refused:
            if FORGOTTEN in refused.found.lower():
                return {}
            raise ExecutorTrouble(refused.found, where="scontrol") from refused

    def _down(self) -> dict[str, str]:
        """Nodes that Slurm cannot reach, and what it says of them."""
        lines = call("sinfo", "-h", "-N", "-o", "%N %t").splitlines()
        told = dict(line.split(maxsplit=1) for line in lines if " " in line)
        return {node: state for node, state in told.items() if state.startswith(("down", "drain", "fail", "unk"))}

    def _try(self, gpus: int) -> None:
        """Ask Slurm whether such a job could ever run; Refused with what the partition has."""
        try:
            _sbatch("--test-only", *self._words(gpus), stdin="#!/bin/sh\n", patience=SHORT)
        except Refused as refused:
            has = call("sinfo", "-h", *self._partition(), "-o", "%D x %c CPUs, %m MB, %G", patience=SHORT)
            offers = "; ".join(line.replace("(null)", "no GPUs") for line in dict.fromkeys(has.splitlines()))
            asked = " ".join(self._words(gpus)) or "a plain job"
            remedy = f"the partition has {offers}" if offers else ""
            raise UsageError(f"Slurm refuses {asked}: {refused.found}", where=self.where.text, remedy=remedy) from None

    def _submit(self, token: str, gpus: int, group: Sequence[Kept]) -> str:
        """Submit one array; its number."""
        folder = _batch_folder(group[0])
        folder.mkdir(exist_ok=True)
        for kept in group:
            _write_start(kept)
            with contextlib.suppress(FileExistsError):
                (folder / str(kept.placement.index)).symlink_to(Path("..") / kept.job.id)
        mine = f'{shlex.quote(str(folder))}/"$SLURM_ARRAY_TASK_ID"'
        script = f"#!/bin/sh\nexec /bin/sh {mine}/{START}\n"
        log, begins_in = f"{str(folder).replace('%', '%%')}/%a/output.log", str(folder)
        if "\\" in begins_in:  # Slurm takes it out of any path: the task has to find its log itself
            log, begins_in = "/dev/null", "/"
            script = f"#!/bin/sh\nexec /bin/sh {mine}/{START} >> {mine}/output.log 2>&1\n"
        words = [
            "--parsable",
            f"--job-name={token}",
            f"--array={','.join(str(kept.placement.index) for kept in group)}",
            f"--output={log}",
            "--open-mode=append",
            "--requeue" if self.where.settings.requeue else "--no-requeue",
            f"--chdir={begins_in}",
            *self._words(gpus),
        ]
        return _sbatch(*words, stdin=script).strip().partition(";")[0]

    def _partition(self) -> tuple[str, ...]:
        return (f"--partition={self.where.target}",) if self.where.target else ()

    def _words(self, gpus: int) -> tuple[str, ...]:
        """What the settings and the job ask for."""
        settings = self.where.settings
        gpus = settings.gpus or gpus
        gres = settings.gres or (f"gpu:{gpus}" if gpus else "")
        told = {
            "gres": gres,
            "time": _time(settings.time),
            "account": settings.account,
            "mem": settings.memory,
            "cpus-per-task": str(settings.cpus or ""),
        }
        words = (f"--{name}={value}" for name, value in told.items() if value)
        return (*self._partition(), *words, *settings.options)


def _batch_folder(kept: Kept) -> Path:
    """Where an array finds its jobs by their numbers: links, for a node knows no more than its number."""
    return kept.job.path.parent / f".batch-{kept.placement.token}"


def _write_start(kept: Kept) -> None:
    """Write what a node runs for a job: in the folder it was asked from, by the interpreter it was meant for."""
    job: JobDirectory = kept.job
    command = kept.placement.need.command
    words = [*(command or (sys.executable,)), "-u", "-P", ALONE, "hfbench.worker", str(job.path), "--kept", "--attempt"]
    lines = [
        "#!/bin/sh",
        f"cd {shlex.quote(str(job.request.get('cwd') or '/'))} || cd /",
        *(f"unset {name}" for name in (OF_OUR_PYTHON if command else ())),
        f"export PYTHONUNBUFFERED=1 PYTHONPATH={shlex.quote(ALONE if command else python_path())}",
        f'exec {shlex.join(words)} "${{SLURM_RESTART_COUNT:-0}}"',
    ]
    (job.path / START).write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")


def _sbatch(*words: str, stdin: str, patience: float = PATIENCE) -> str:
    """What sbatch prints; nodes that it says it lacks are asked for again before that is believed."""
    for seconds in AGAIN:
        try:
            return call("sbatch", *words, stdin=stdin, patience=patience)
        except Refused as refused:
            if NOT_YET not in refused.found.lower():
                raise
        time.sleep(seconds)
    return call("sbatch", *words, stdin=stdin, patience=patience)


def _time(text: str) -> str:
    """A time limit as Slurm writes it: `30m` and `2h` are hfbench's own way."""
    if not text or OWN_TIME.fullmatch(text):
        return text
    return str(math.ceil(parse_duration(text) / 60))
