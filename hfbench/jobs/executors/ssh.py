"""A second box over ssh: no daemon, no shared disk; a worker there, its events over one connection that may break."""

from __future__ import annotations

import contextlib
import select
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import hfbench
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.jobs.cancel import SLACK
from hfbench.jobs.executors.base import Executor, ExecutorTrouble, Kept, Look, Need, Phase
from hfbench.jobs.executors.mirror import Mirror
from hfbench.jobs.executors.spec import Where
from hfbench.jobs.executors.ssh_bring import LeftBehind, bring
from hfbench.jobs.executors.ssh_client import run_there
from hfbench.jobs.executors.ssh_session import Session, far_command

USUAL_PYTHON = "python3"
ASKING = 20.0
"""Seconds for an answer while somebody waits for the launch, or for the far end to begin."""
STEPS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before each try to connect again; the last stays."""
BELIEVED = 60.0
"""Seconds for which a host that took the last job is not asked again whether it takes another."""
PROBE = """import sys
sys.path[:] = [each for each in sys.path if each]
try:
    import hfbench
    version = hfbench.__version__
except (ImportError, AttributeError):
    version = ""
print("hfbench-probe", sys.version.split()[0], version or "-")
"""


_welcome: dict[tuple[str, str], float] = {}


class Ssh(Executor):
    """Jobs of one host, each with a connection; ssh shares one line among them."""

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self.host = where.target
        self.python = where.settings.python or USUAL_PYTHON
        self._lines: dict[str, Line] = {}

    def refuse(self, needs: Sequence[Need]) -> None:
        if not shutil.which("ssh"):
            raise MissingError("there is no ssh on this machine", where=self.where.text, remedy="install openssh")
        if any(need.command for need in needs):
            raise UsageError("an environment of this machine cannot run over there", where=self.where.text)
        if time.monotonic() < _welcome.get((self.host, self.python), 0.0):
            return
        with contextlib.suppress(ExecutorTrouble):
            self._refuse_strangers(run_there(self.host, far_command(self.python, "-c", PROBE), patience=ASKING))
            _welcome[self.host, self.python] = time.monotonic() + BELIEVED

    def submit(self, jobs: Sequence[Kept]) -> Mapping[str, str]:
        told = {}
        for kept in jobs:
            line = self._line(kept)
            line.connect()
            end = time.monotonic() + ASKING
            while (session := line.session) is not None and session.hello is None and time.monotonic() < end:
                select.select([session], [], [], 0.5)
                line.pump()
            if line.folder:
                told[kept.job.id] = kept.job.short_id
            else:
                line.drop()
                raise ExecutorTrouble(f"{self.host} has not answered for {ASKING:.0f} s")
        return told

    def look(self, jobs: Sequence[Kept]) -> Mapping[str, Look]:
        return {kept.job.id: self._line(kept).look() for kept in jobs}

    def stop(self, jobs: Sequence[Kept], *, hard: bool) -> None:
        for kept in jobs:
            self._line(kept).wish("kill" if hard else "cancel")

    def pause(self, seconds: float) -> None:
        sessions = [line.session for line in self._lines.values() if line.session is not None]
        select.select(sessions, [], [], min(seconds, 1.0))

    def close(self, jobs: Iterable[Kept]) -> None:
        for line in self._lines.values():
            line.drop()

    def _line(self, kept: Kept) -> Line:
        if kept.job.id not in self._lines:
            self._lines[kept.job.id] = Line(self, kept)
        return self._lines[kept.job.id]

    def _refuse_strangers(self, told: str) -> None:
        """MissingError unless the far Python has this very version of hfbench."""
        words = next((line.split() for line in told.splitlines() if line.startswith("hfbench-probe ")), [])
        where, version = self.where.text, hfbench.__version__
        if len(words) != 3:
            raise MissingError(f"{self.python} over there does not answer", where=where, remedy=f"try: ssh {self.host}")
        install = f"install it there: {self.python} -m pip install hfbench=={version}"
        if words[2] == "-":
            found = f"{self.python} (Python {words[1]}) over there has no hfbench"
            raise MissingError(found, where=where, remedy=f"{install}, or name another interpreter with python=")
        if words[2] != version:
            raise MissingError(f"hfbench is {words[2]} over there, and {version} here", where=where, remedy=install)


class Line:
    """The way to one job over there: a session, or the wait for the next try."""

    def __init__(self, executor: Ssh, kept: Kept) -> None:
        self.host, self.python = executor.host, executor.python
        self.folder = ""
        """The job's folder over there, once it is known."""
        self.session: Session | None = None
        self._job, self._mirror = kept.job, Mirror(kept.job, kept.placement.log_base)
        self._far_folder = executor.where.settings.folder
        self._trouble, self._tries, self._next = "", 0, 0.0
        self._wish, self._asked_at = "", 0.0
        self._left_behind = LeftBehind()

    def connect(self) -> None:
        """Begin a session, if there is none: the far end begins the job if it has not."""
        if self.session is None:
            request = {k: v for k, v in self._job.request.items() if k not in ("on", "environment")}
            asked: dict[str, Any] = {"id": self._job.id, "request": request, "folder": self._far_folder}
            offsets = {"events": self._mirror.events, "log": self._mirror.log}
            self.session = Session(self.host, self.python, {**asked, **offsets})

    def wish(self, word: str) -> None:
        """Ask the far end to cancel or to kill: now, or as soon as there is a connection."""
        self._wish = word
        self._tell_wish()

    def _tell_wish(self) -> None:
        """A request to cancel; to kill only when that was heard, and the grace of the job is over."""
        if self.session is None or self.session.hello is None or not self._wish:
            return
        if not self._asked_at:
            self.session.send("cancel")
            self._asked_at = time.monotonic()
        elif self._wish == "kill" and time.monotonic() > self._asked_at + self._job.grace + SLACK:
            self.session.send("kill")
            self._wish = ""

    def drop(self) -> None:
        """Let the connection go."""
        if self.session is not None:
            self.session.close()
        self.session = None

    def look(self) -> Look:
        """Take in what came; connect again where the connection was cut."""
        if self.session is None and time.monotonic() >= self._next:
            self.connect()
        try:
            self.pump()
        except HfbenchError as error:  # even a refusal: the job is there, and its owner may mend the way to it
            self.drop()
            self._trouble = str(error)
            self._next = time.monotonic() + STEPS[min(self._tries, len(STEPS) - 1)]
            self._tries += 1
        self._tell_wish()
        phase = Phase.ENDED if self._mirror.over else Phase.RUNNING
        return Look(phase=phase, node=self.host, trouble=self._trouble)

    def pump(self) -> None:
        """Write down what has come; the result is fetched before the last event."""
        if self.session is None:
            return
        for what, data in self.session.frames():
            if what == "log":
                self._mirror.add_log(data)
            else:
                self._mirror.add_events(data, self._bring_result)
            if self._mirror.over:
                if not self._left_behind.failed:
                    self.session.send("forget")
                return
        if self.session.hello is not None:
            self.folder = str(self.session.hello.get("folder") or "")
            self._trouble, self._tries = "", 0

    def _bring_result(self) -> None:
        """Copy what the job made here, and tell in its log what did not come; ExecutorTrouble when to try again."""
        hello = (self.session.hello if self.session else None) or {}
        self._left_behind = bring(self.host, str(hello.get("folder") or ""), self._job, rsync=bool(hello.get("rsync")))
        self._mirror.add_log("".join(f"{line}\n" for line in self._left_behind.lines()).encode())
