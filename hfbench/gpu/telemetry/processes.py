"""Processes that hold memory of a card: who they are, and which job they work for."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hfbench.gpu.nvml import LACKING, Nvml
from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.telemetry.readings import GpuProcess
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Started, from_line
from hfbench.jobs.process import same_process
from hfbench.text import clip, printable

PROC = Path("/proc")
WORKER = b"hfbench.worker"
LONGEST_COMMAND = 200
MOST_ANCESTORS = 32
MOST_PROCESSES = 256
"""Looked at for their user and command, of one card."""
LARGEST_LINE = 4096
"""Bytes of the first event of a job at most."""

UNTOLD = Unavailable("the driver does not tell it here")
"""What stands for the memory of a process inside a container or beside Windows."""
NOT_HERE = Unavailable("the process is not visible from here")


def read_processes(nvml: Nvml, handle: Any) -> tuple[GpuProcess, ...] | Unavailable:
    """Those that compute and those that draw, most memory first; Unavailable when the driver lists neither."""
    held: dict[int, tuple[list[str], Value]] = {}
    answers = {kind: _listed(nvml, handle, kind) for kind in ("Compute", "Graphics")}
    if isinstance(answers["Compute"], Unavailable):
        return answers["Compute"]
    for kind, answer in answers.items():
        for each in () if isinstance(answer, Unavailable) else answer:
            kinds, _ = held.setdefault(int(each.pid), ([], UNTOLD))
            kinds.append(kind.lower())
            if each.usedGpuMemory is not None:
                held[int(each.pid)] = (kinds, int(each.usedGpuMemory))
    told = getattr(nvml.binding, "process_facts", None)  # made-up cards have made-up processes
    found = [_process(pid, kinds, memory, told) for pid, (kinds, memory) in list(held.items())[:MOST_PROCESSES]]
    return tuple(sorted(found, key=lambda each: (-_order(each.memory), each.pid)))


def _listed(nvml: Nvml, handle: Any, kind: str) -> Any:
    """By the newest structure the driver knows."""
    answer: Any = Unavailable("")
    for version in ("_v3", "_v2"):
        answer = nvml.read(f"nvmlDeviceGet{kind}RunningProcesses{version}", handle)
        if not isinstance(answer, Unavailable) or answer.reason not in LACKING:
            return answer
    return answer


def _order(memory: Value) -> float:
    return -1 if isinstance(memory, Unavailable) else memory


def _process(pid: int, kinds: list[str], memory: Value, told: Callable[[int], tuple[str, str]] | None) -> GpuProcess:
    known = tuple(kind for kind in ("compute", "graphics") if kind in kinds)
    return GpuProcess(
        pid=pid,
        kinds=known,
        memory=memory,
        user=told(pid)[0] if told else user_of(pid),
        command=told(pid)[1] if told else command_of(pid),
        job="" if told else job_of(pid),
    )


def user_of(pid: int) -> str | Unavailable:
    """The name of the user a process runs as, or the number where it has no name."""
    try:
        number = (PROC / str(pid)).stat().st_uid
    except OSError:
        return NOT_HERE
    try:
        return printable(pwd.getpwuid(number).pw_name)
    except KeyError:
        return str(number)


def command_of(pid: int) -> str | Unavailable:
    """The command line of a process, safe to paint; its short name where the kernel keeps none."""
    words = _words(pid)
    if words is None:
        return NOT_HERE
    text = b" ".join(words).decode("utf-8", "surrogateescape")
    if not text:
        try:
            text = f"[{(PROC / str(pid) / 'comm').read_text(errors='surrogateescape').strip()}]"
        except OSError:
            return NOT_HERE
    return clip(printable(text), LONGEST_COMMAND, ellipsis="...")


def job_of(pid: int) -> str:
    """The id of the job whose worker is this process or an ancestor of it, else an empty string.

    The command line of a worker names its folder; the first event there must name that very process.
    """
    lineage: list[int] = []
    while pid > 1 and len(lineage) < MOST_ANCESTORS:
        lineage.append(pid)
        words = _words(pid) or []
        if WORKER in words:
            folder = _folder(words, pid)
            started = _started(folder) if folder else None
            if folder and started and _leads_to(started, pid):
                return folder.id
        pid = _parent(pid)
    return ""


def _leads_to(started: Started, pid: int) -> bool:
    """The process that wrote the event is still there, and is `pid` or its parent."""
    return started.pid in (pid, _parent(pid)) and same_process(started.pid, started.ticks)


def _folder(words: list[bytes], pid: int) -> JobDirectory | None:
    after = words[words.index(WORKER) + 1 :]
    named = [os.fsdecode(word) for word in after if not word.startswith(b"-") and not word.isdigit()]
    if not named:
        return None
    path = Path(named[0])
    if not path.is_absolute():
        try:
            path = Path(os.readlink(PROC / str(pid) / "cwd")) / path
        except OSError:
            return None
    return JobDirectory(path)


def _started(job: JobDirectory) -> Started | None:
    try:
        with open(os.open(job.events, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            event = from_line(file.readline(LARGEST_LINE))
    except OSError:
        return None
    return event if isinstance(event, Started) else None


def _words(pid: int) -> list[bytes] | None:
    """The command line of a process; None when it is not there, or is hidden."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return None


def _parent(pid: int) -> int:
    """Field 4 of /proc/PID/stat; 0 when it is gone."""
    try:
        return int((PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
