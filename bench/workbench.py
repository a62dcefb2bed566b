"""The workbench as a program to be measured: how it is started, where, and what its home holds."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from terminal import Terminal

import hfbench
from hfbench.jobs.directory import create
from hfbench.jobs.events import Finished, Metric, Progress, Running, Started
from hfbench.jobs.writer import EventWriter

COMMAND = (sys.executable, "-m", "hfbench")
CHECKOUT = Path(__file__).resolve().parents[1]

FIRST_FRAME = "Sources"
"""Stands on the Models screen as soon as it is painted."""


def environment(scratch: Path, home: str = "home") -> dict[str, str]:
    """Variables of a measured program: a home of its own below `scratch`, and compiled modules as users have them."""
    return {
        "HFBENCH_HOME": str(scratch / home),
        "HF_HOME": str(scratch / "hf"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(scratch / "compiled"),
    }


def in_terminal(scratch: Path, *words: str, home: str = "home", command: tuple[str, ...] = COMMAND) -> Terminal:
    """The workbench, or another command, in a terminal of 120x40."""
    return Terminal([*command, *words], environment=environment(scratch, home))


def surroundings(scratch: Path, home: str = "home") -> dict[str, str]:
    """The whole environment of a measured command that needs no terminal."""
    return {**os.environ, **environment(scratch, home)}


def fill_with_jobs(home: Path, count: int) -> None:
    """Write `count` finished jobs, as if they had run."""
    for number in range(count):
        params = {"model": f"models/model-{number % 12}", "batch": 1 << number % 6}
        job, lock = create(home / "jobs", "bench.generate", {"params": params})
        job.write("result.json", {"action": "bench.generate", "seconds": 1.0, "result": {"headline": "tpot 8.1 ms"}})
        with EventWriter(job) as write:
            write(Started(pid=1, ticks=1, host="here"))
            write(Running(device="cuda:0"))
            for step in range(20):
                write(Progress(phase="measure", done=step, total=20, unit="step"))
                write(Metric(name="tpot", value=0.008 + step * 1e-5, unit="s"))
            write(Finished(seconds=1.0))
        os.close(lock)


def versions() -> Mapping[str, str]:
    """What is measured."""
    return {"hfbench": hfbench.__version__, "textual": version("textual"), "rich": version("rich")}
