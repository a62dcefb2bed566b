"""toy.make: makes files, tells where it ran, and may wait for another file first."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.jobs.run import Run


@dataclass(frozen=True)
class Made:
    """The process, its folder, and what it was given."""

    pid: int
    cwd: str
    folder: str
    package: str
    cuda: str


@action("toy.make", result=Made)
@dataclass(frozen=True, kw_only=True)
class Make:
    """Make files."""

    size: int = param("Bytes of one file", default=1000, ge=0)
    odd: bool = param("Make a pipe, too", default=False)
    until: Path | None = param("A file to wait for", default=None, kind="path")

    def perform(self, run: Run) -> Made:
        import hfbench

        inner = run.artifacts / "deep"
        inner.mkdir()
        (inner / "zeros.bin").write_bytes(bytes(self.size))
        run.artifact(inner / "zeros.bin", "zeros")
        (run.artifacts / "link").symlink_to("/etc/hostname")
        if self.odd:
            os.mkfifo(run.artifacts / "pipe")
        run.log("waiting")
        while self.until is not None and not self.until.exists():
            time.sleep(0.02)
        return Made(
            pid=os.getpid(),
            cwd=str(Path.cwd()),
            folder=str(run.directory),
            package=str(Path(hfbench.__file__).parent),
            cuda=os.environ.get("CUDA_VISIBLE_DEVICES", "unset"),
        )
