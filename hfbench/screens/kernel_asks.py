"""Asks the kernel actions beside their screen: rows of earlier runs in a child process, new ones by jobs it follows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.actions.aside import Aside
from hfbench.actions.registry import find
from hfbench.codec import decode
from hfbench.errors import HfbenchError, error_from_parts
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.follow import snapshots
from hfbench.jobs.state import State
from hfbench.paths import cache_root, jobs_root
from hfbench.screens.background import Stopped
from hfbench.screens.job_text import phases
from hfbench.screens.messages import Latest
from hfbench.screens.recent import read_recent, remember
from hfbench.widgets.kernel_rows import KernelState
from hfbench.widgets.progress_text import Phase

if TYPE_CHECKING:
    from hfbench.actions.kernel_static import KernelStaticResult

LIST, STATIC = "kernel.list", "kernel.static"
PACE = 0.2
"""Seconds between two pictures of a job: more often is not read, and over SSH each one costs."""

Post = Callable[[Message], None]


@dataclass
class Listed(Message):
    """The kernels there are, in their order."""

    states: tuple[KernelState, ...]


@dataclass
class Analysed(Message):
    """Rows of one kernel; `opened` when its file was asked for by name."""

    kernel: str
    result: KernelStaticResult
    opened: bool = False


@dataclass
class ReadAll(Message):
    """Nothing more comes of what was asked, or it went wrong for the reason told."""

    error: HfbenchError | None = None


@dataclass
class Compiling(Latest):
    """How far the job is that compiles a kernel."""

    kernel: str
    job: str
    phases: tuple[Phase, ...]


@dataclass
class Compiled(Message):
    """The job is over, with rows or for the reason told; cancelled, with neither."""

    kernel: str
    result: KernelStaticResult | None = None
    error: HfbenchError | None = None


def own_files() -> Path:
    """Where the list of one's own kernel files is kept, the latest first."""
    return cache_root() / "recent-kernels.json"


def read_kernels(stopped: Stopped, post: Post) -> None:
    """List own files and the shipped kernels, then tell the rows that earlier runs left of each."""
    with Aside() as aside:
        listed = aside.ask(LIST, {}, stopped)
        states = [own_state(path) for path in read_recent(own_files()) if Path(path).is_file()]
        states += [
            KernelState(kernel=each.name, name=each.name, summary=each.summary, file=each.file)
            for each in listed.kernels
        ]
        post(Listed(tuple(states)))
        find(STATIC).require()
        trouble: HfbenchError | None = None
        for state in states:
            try:
                post(Analysed(state.kernel, _earlier(aside, state.kernel, stopped)))
            except HfbenchError as error:  # a file of one's own that cannot be read costs no other kernel
                trouble = trouble or error
        post(ReadAll(trouble))


def open_kernel(path: str, stopped: Stopped, post: Post) -> None:
    """The rows that earlier runs left of one file, which is remembered; an error when it is no Python."""
    with Aside() as aside:
        result = _earlier(aside, path, stopped)
    remember(path, own_files())
    post(Analysed(path, result, opened=True))


def own_state(path: str) -> KernelState:
    """A file of the user's of which nothing is known yet."""
    return KernelState(kernel=path, name=Path(path).name, summary="", file=path)


def follow_job(kernel: str, id: str, stopped: Stopped, post: Post) -> None:
    """Tell how far a job is until it is over, and then its rows."""
    for snapshot in snapshots(JobDirectory(jobs_root() / id), stop=stopped):
        if not snapshot.state.over:
            named = tuple(replace(each, name=f"{each.name} {kernel.rpartition('/')[2]}") for each in phases(snapshot))
            post(Compiling(kernel, id, named))
            time.sleep(PACE)
        elif snapshot.state is State.FINISHED and snapshot.result is not None:
            result: KernelStaticResult = decode(find(STATIC).result, snapshot.result)
            post(Compiled(kernel, result))
        elif snapshot.error:
            post(Compiled(kernel, error=error_from_parts(snapshot.error)))
        elif snapshot.state is State.CANCELLED:
            post(Compiled(kernel))
        else:
            text = f"the job {snapshot.state}: {snapshot.sentence()}"
            post(Compiled(kernel, error=HfbenchError(text, where=snapshot.short_id)))


def follow_running(ids: Sequence[str], stopped: Stopped, post: Post) -> None:
    """Follow the first of these jobs that says which kernel it compiles."""
    for id in ids:
        params = JobDirectory(jobs_root() / id).request.get("params")
        if isinstance(params, dict) and isinstance(params.get("kernel"), str):
            follow_job(params["kernel"], id, stopped, post)
            return


def _earlier(aside: Aside, kernel: str, stopped: Stopped) -> KernelStaticResult:
    result: KernelStaticResult = aside.ask(STATIC, {"kernel": kernel, "compile": False}, stopped)
    return result
