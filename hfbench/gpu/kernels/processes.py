"""Processes that hold a kernel file loaded and do one task at a time: it may hang, crash or print what it likes."""

from __future__ import annotations

import ctypes
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import IO, Any, Literal

from hfbench.beside import python_path
from hfbench.errors import HfbenchError, error_from_parts
from hfbench.gpu.kernels.scratch import Scratch
from hfbench.jobs.process import signal_name
from hfbench.units import show_seconds

START_SECONDS = 30.0
"""CPU seconds for Python, torch, Triton and the file."""
IDLE_SECONDS = 90.0
"""Seconds that a process which loads the file may spend without any CPU time: it sleeps, or waits for something."""
WALL, WALL_MORE = 4.0, 20.0
"""Seconds on the wall for a second of CPU time that a task may take, and more for a machine that is busy."""
TICK = 1.0
"""Seconds between two looks at a process that loads the file."""
DUMP_SECONDS = 2.0
"""Seconds to tell where it is, for a process that is given up."""
CHUNK = 2**16
LAST_WORDS = 2**16
"""Bytes looked at of what a process wrote to its streams."""
PASSED_ON = 2**13
"""Characters of it that reach the log of the job."""

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
"""What needs no GPU touches none, whoever holds it."""
_KEPT_TRITON = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
"""Whoever sets these wants another assembler; all other settings of Triton would change what is looked at."""
_DUMP = re.compile(r"^(Fatal Python error|Current thread 0x)", re.MULTILINE)
"""How faulthandler begins to tell where a process was."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a task ended: with an answer, or with the end of its process in a sentence."""

    ending: Literal["answered", "crash", "timeout"]
    answer: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


class LoadFailed(HfbenchError):
    """The process ended while it loaded the file."""


Loading = Callable[[float], None]
"""Told for how many seconds a file has been loading."""


def unwatched(seconds: float) -> None:
    """Nobody waits for the file."""


class Crew:
    """At most `size` processes that load a kernel file, started as tasks need them; all have ended after `close`.

    `module` is what does a task: its `prepare(kernel, path)` gives a function of the task's fields. `environment` goes
    over that of this process; Triton decides when it is imported whether functions are interpreted or compiled.
    `loading` is told every second for how many the first process has been loading the file.
    """

    def __init__(
        self,
        module: str,
        path: Path,
        *,
        size: int,
        seconds: float,
        environment: Mapping[str, str] = NO_GPU,
        start_seconds: float = START_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        loading: Loading = unwatched,
    ) -> None:
        self._path, self.size, self._seconds = path, size, seconds
        self._words = [module, str(path), str(start_seconds)]
        self._own_environment, self._start_seconds, self._idle = environment, start_seconds, idle_seconds
        self._loading = loading
        self._scratch = Scratch("hfbench-kernels-")
        self._members: list[_Member] = []
        self._selector = selectors.DefaultSelector()
        self.plan: dict[str, Any] = {}
        """What the file declares, once the first process has told it."""

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def load(self) -> dict[str, Any]:
        """What the file declares, as plain data; the HfbenchError the process answers with when it cannot be used."""
        if not self._members:
            self._start()
        while not self.plan:
            for member, ended in self._heard():
                self._greet(member, ended)
        return self.plan

    def perform(self, tasks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Outcome]]:
        """Outcomes with the place of their task, as they come. A process that hangs is replaced."""
        waiting = deque(range(len(tasks)))
        while waiting or any(member.task is not None for member in self._members):
            self._hand_out(waiting, tasks)
            for member, ended in self._heard():
                task = member.task
                if task is None:
                    self._greet(member, ended)
                elif ended:
                    yield task, Outcome(ending=ended, reason=self._buried(member, ended))
                elif member.lines:
                    member.task, member.until = None, float("inf")
                    yield task, self._outcome(member, json.loads(member.lines.popleft()))

    def close(self) -> None:
        """End every process and remove what they wrote."""
        for member in list(self._members):
            self._bury(member)
        self._selector.close()
        self._scratch.cleanup()

    def _hand_out(self, waiting: deque[int], tasks: Sequence[Mapping[str, Any]]) -> None:
        for member in self._members:
            if waiting and member.ready and member.task is None:
                place = waiting.popleft()
                member.task = place
                member.send({**tasks[place], "seconds": self._seconds}, self._seconds)
        starting = sum(not member.ready for member in self._members)
        while len(self._members) < self.size and starting < len(waiting):
            self._start()
            starting += 1

    def _start(self) -> None:
        environment = _environment({"TRITON_CACHE_DIR": self._scratch.name, **self._own_environment})
        member = _Member(self._words, self._start_seconds, self._idle, environment)
        self._members.append(member)
        self._selector.register(member.output, selectors.EVENT_READ, member)

    def _heard(self) -> list[tuple[_Member, Literal["", "crash", "timeout"]]]:
        """Wait until a process says something, ends or is late: which ones, and how they ended."""
        now, starting = monotonic(), [member for member in self._members if not member.ready]
        until = min([*(member.until for member in self._members), *([now + TICK] if starting else [])], default=now)
        ready = self._selector.select(max(0.0, until - now) if until < float("inf") else None)
        for each in starting:
            each.look()
        if starting and not self.plan:
            self._loading(monotonic() - starting[0].began)
        heard: list[tuple[_Member, Literal["", "crash", "timeout"]]] = []
        for key, _ in ready:
            member: _Member = key.data
            if not member.read():
                heard.append((member, member.ending()))
            elif member.lines:
                heard.append((member, ""))
        told = {id(member) for member, _ in heard}
        late = [each for each in self._members if each.until <= monotonic() and id(each) not in told]
        return heard + [(member, "timeout") for member in late]

    def _greet(self, member: _Member, ended: Literal["", "crash", "timeout"]) -> None:
        """Take what a process says when it has loaded the file."""
        if ended:
            told = self._buried(member, ended, self._start_seconds)
            raise LoadFailed(
                f"could not be loaded: {told}",
                where=self._path,
                remedy="load it with python alone to see why",
            )
        told = json.loads(member.lines.popleft())
        if "error" in told:
            raise error_from_parts(told["error"])
        self.plan = self.plan or told
        member.ready, member.until = True, float("inf")

    def _outcome(self, member: _Member, answer: dict[str, Any]) -> Outcome:
        if (code := answer.get("ended")) is None:
            return Outcome(ending="answered", answer=answer)
        ending: Literal["crash", "timeout"] = "timeout" if code == -signal.SIGXCPU else "crash"
        return Outcome(ending=ending, reason=_told(ending, code, member.last_words(), self._path, self._seconds, ""))

    def _buried(self, member: _Member, ended: str, seconds: float | None = None) -> str:
        """End a process and say how it ended."""
        why = member.overdue()
        return _told(ended, self._bury(member), member.last_words(), self._path, seconds or self._seconds, why)

    def _bury(self, member: _Member) -> int:
        """End a process, whatever it does; its exit code."""
        self._selector.unregister(member.output)
        self._members.remove(member)
        return member.end()


class _Member:
    """One process: what it said and was not heard yet, what it does, and when it must be done."""

    def __init__(self, words: Sequence[str], seconds: float, idle: float, environment: Mapping[str, str]) -> None:
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "hfbench.gpu.kernels.child", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
            bufsize=0,
            process_group=0,  # the assembler that it runs must end with it
        )
        assert self.process.stdout
        self.output = self.process.stdout
        self.lines: deque[bytes] = deque()
        self.ready = False
        self.task: int | None = None
        self.began = self._active = monotonic()
        self._idle, self._latest, self._used = idle, self.began + WALL * seconds + WALL_MORE, 0
        self.until = min(self._latest, self.began + idle)
        self._rest = b""
        self._mark = 0
        self._words: str | None = None

    def send(self, task: Mapping[str, Any], seconds: float) -> None:
        """Hand over a task. A process that just ended is heard of when its output is read."""
        assert self.process.stdin
        self.until = monotonic() + WALL * seconds + WALL_MORE
        self._mark = os.fstat(self.log.fileno()).st_size
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(task).encode() + b"\n")

    def look(self) -> None:
        """Put off the end of a process that loads the file and works; one that sleeps is not waited for as long."""
        if (used := _cpu_ticks(self.process.pid)) > self._used:
            self._used, self._active = used, monotonic()
            self.until = min(self._latest, self._active + self._idle)

    def overdue(self) -> str:
        """Let a process that loads the file tell at which line it is, and say what it was given up for; else empty."""
        if self.ready or monotonic() < self.until or self.process.poll() is not None:
            return ""
        self.process.send_signal(signal.SIGXCPU)  # faulthandler writes down where it is
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(DUMP_SECONDS)
        if self.until < self._latest:
            return f"nothing has happened for {show_seconds(self._idle)}"
        return f"still loading after {show_seconds(self._latest - self.began)}"

    def read(self) -> bool:
        """Read what is there; False at the end."""
        part = os.read(self.output.fileno(), CHUNK)
        *lines, self._rest = (self._rest + part).split(b"\n")
        self.lines.extend(lines)
        return bool(part)

    def ending(self) -> Literal["crash", "timeout"]:
        """How a process ended that closed its output."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5.0)
        return "timeout" if self.process.returncode == -signal.SIGXCPU else "crash"

    def end(self) -> int:
        """Kill what is left, and pass on to our own stderr what it wrote; the exit code."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)  # its pid is not free before it is waited for
        with self.process:
            pass
        with self.log:
            self._words = self._written(self._mark)
            with suppress(OSError, ValueError):
                sys.stderr.write(self._written(0)[-PASSED_ON:])
        return self.process.returncode

    def last_words(self) -> str:
        """The end of what it wrote since the task was handed over."""
        return self._written(self._mark) if self._words is None else self._words

    def _written(self, begin: int) -> str:
        self.log.seek(max(begin, self.log.seek(0, os.SEEK_END) - LAST_WORDS))
        return self.log.read().decode("utf-8", "replace")


def _told(ended: str, code: int, words: str, path: Path, seconds: float, why: str) -> str:
    """How a process ended, or `why` it was given up, and at which line: faulthandler names the innermost first."""
    dump = _DUMP.search(words)
    place = re.search(rf'File "{re.escape(str(path))}", line (\d+)', words[dump.start() :]) if dump else None
    where = f", at line {place[1]}" if place else ""
    if ended == "timeout":
        return f"{why or f'still running after {show_seconds(seconds)}'}{where}"
    how = signal_name(-code) if code < 0 else f"exit status {code}"
    before = words[: dump.start()].strip().splitlines() if dump else []
    said = f" ({before[-1][:200]})" if before else ""
    return f"the process ended by {how}{where}{said}"


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """Ours, without settings of Triton that change what is looked at."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_") or name in _KEPT_TRITON}
    return {
        **kept,
        "PYTHONPATH": python_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        **own,
    }


def _cpu_ticks(pid: int) -> int:
    """CPU time of a process and of those it has waited for, in ticks of the kernel; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))
    except (OSError, ValueError):
        return 0


def take_streams() -> tuple[IO[str], IO[str]]:
    """Where tasks come from and answers go, out of reach of other code: its input is empty, its output is stderr."""
    asking = os.fdopen(os.dup(0), "r", encoding="utf-8")
    giving = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return asking, giving


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the one that started it ends."""
    parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
