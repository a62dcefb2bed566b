"""One attempt at a job on Ray, as its keeper sees it: the actor, what it was asked, and what it has made."""

from __future__ import annotations

import io
import os
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import hfbench
from hfbench.errors import HfbenchError
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.executors.base import Kept, Placement
from hfbench.jobs.executors.mirror import Mirror
from hfbench.jobs.executors.spec import Where

PACKAGE = Path(hfbench.__file__).parent
LONG_POLL = 5.0
"""Seconds an actor waits for something to tell."""
ANSWER = 30.0
"""Seconds an actor may take to answer what it need not wait for."""
STARTING = 2.0
"""Seconds an actor may take to start before its job is said to wait."""


@dataclass
class Attempt:
    """One actor; `ray` is the library, connected."""

    ray: Any
    handle: Any
    number: int
    mirror: Mirror
    news: Any = None
    """The answer that is awaited."""
    node: str = ""
    """Empty until the actor has spoken."""
    pid: int = 0
    sent: bool = False
    """Whether hfbench was sent to its node."""
    waits_for: str = ""
    look_again: float = field(default_factory=lambda: time.monotonic() + STARTING)
    """When to find out what it waits for."""
    unmet_since: float = 0.0
    """Since when no node could ever run it; 0 while one could."""

    @property
    def worker(self) -> str:
        """The process of the actor, in words."""
        return f"Ray worker {self.pid} on {self.node}"

    def ask(self) -> None:
        """Have a question under way."""
        if self.news is None:
            self.news = self.handle.news.remote(self.mirror.events, self.mirror.log, LONG_POLL)

    def bring(self, job: JobDirectory) -> None:
        """Copy what the job has made, over a shared disk or through Ray; the result last: it tells that all is here."""
        files = self.get(self.handle.files.remote())
        for name, size in sorted(files.items(), key=lambda each: each[0] == "result.json"):
            inside = PurePosixPath(name)
            if inside.is_absolute() or ".." in inside.parts:
                raise HfbenchError(f"a file is called {name!r}", where=self.node)
            target = job.path / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.far")
            if not self.get(self.handle.bring.remote(name, str(temporary.relative_to(job.path)))):
                with temporary.open("wb") as file:
                    while file.tell() < size and (piece := self.get(self.handle.piece.remote(name, file.tell()))):
                        file.write(piece)
            temporary.replace(target)

    def let_go(self) -> None:
        """Free what the actor holds, its folder first."""
        self.get(self.handle.remove.remote())
        self.ray.kill(self.handle)

    def get(self, answer: Any) -> Any:
        """What the actor answers."""
        return self.ray.get(answer, timeout=ANSWER)


def actor_name(placement: Placement) -> str:
    """What an actor is called: the same for every keeper of the job."""
    again = f"-again{placement.attempt}" if placement.attempt else ""
    return f"{placement.token}-{placement.index}{again}"


def told_to_actor(kept: Kept, where: Where) -> dict[str, Any]:
    """What the far side must know of this one."""
    settings, command = where.settings, kept.placement.need.command
    return {
        "id": kept.job.id,
        "job": str(kept.job.path.absolute()),
        "token": kept.placement.token,
        "package": str(PACKAGE),
        "version": hfbench.__version__,
        "python": list(command) or ([settings.python] if settings.python else []),
        "folder": settings.folder,
    }


def archive() -> bytes:
    """This hfbench, for a node that has none of its version."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for folder, inner, names in os.walk(PACKAGE):
            inner[:] = [each for each in inner if each != "__pycache__"]
            for path in (Path(folder) / name for name in names):
                file.write(path, path.relative_to(PACKAGE.parent))
    return packed.getvalue()
