"""What it costs to watch: bytes a repaint and CPU a second of the Job screen, and an idle workbench."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from claims import Claim, Record, finish, run
from terminal import Terminal
from workbench import COMMAND, FIRST_FRAME, in_terminal, surroundings, versions

from hfbench.actions.registry import ACTIONS_PATH

ACTIONS = Path(__file__).resolve().parent / "actions"

GAP = 0.03
"""Seconds of silence between two repaints."""

WINDOW = 2.0
"""Seconds over which CPU time is counted."""

REPAINTS, WINDOWS, IDLE = 60, 7, 5

BYTES = Claim(
    name="live-job-bytes",
    sentence="a repaint of the page of a job with ten metrics a second writes at most 3 kB",
    bound=3000,
    unit="B",
)
LARGEST = Claim(
    name="live-job-largest",
    sentence="no repaint of the page of a running job writes more than 3 kB",
    bound=3000,
    unit="B",
)
CPU = Claim(
    name="live-job-cpu",
    sentence="watching a job with ten metrics a second takes at most a tenth of a processor",
    bound=0.100,
    unit="s CPU a second",
)
IDLE_BYTES = Claim(name="idle-bytes", sentence="an idle Models screen writes nothing", bound=0, unit="B in 5 s")
IDLE_CPU = Claim(
    name="idle-cpu",
    sentence="an idle workbench takes at most a fiftieth of a processor",
    bound=0.020,
    unit="s CPU a second",
)
CLAIMS = (BYTES, LARGEST, CPU, IDLE_BYTES, IDLE_CPU)


def burden(terminal: Terminal) -> float:
    """CPU seconds a second, over a window in which what is painted is read away."""
    began, before = time.perf_counter(), terminal.cpu_seconds()
    while (rest := began + WINDOW - time.perf_counter()) > 0:
        terminal.read_for(rest)
    return (terminal.cpu_seconds() - before) / (time.perf_counter() - began)


def idle(scratch: Path) -> list[Record]:
    """The Models screen with nothing to tell."""
    with in_terminal(scratch) as terminal:
        terminal.wait_for(FIRST_FRAME)
        terminal.drain(2.5)
        silent = run(IDLE_BYTES, lambda: float(len(terminal.read_for(5.0))), rounds=IDLE, versions=versions())
        return [silent, run(IDLE_CPU, lambda: burden(terminal), rounds=WINDOWS, versions=versions())]


def live(scratch: Path) -> list[Record]:
    """The page of a running job."""
    words = [*COMMAND, "ticks", "--seconds", "120", "--detach"]
    started = subprocess.run(words, env=surroundings(scratch), check=True, capture_output=True, text=True)
    job = started.stdout.strip()
    try:
        with in_terminal(scratch) as terminal:
            terminal.wait_for(FIRST_FRAME)
            terminal.drain(1.0)
            terminal.answer("2", job[-6:])
            terminal.drain(0.3)
            terminal.answer("enter", "p50")
            terminal.read_for(3.0)  # the plot fills its width
            sizes = [float(len(terminal.repaint(GAP))) for _ in range(REPAINTS)]
            each = iter(sizes)
            usual = run(BYTES, lambda: next(each), rounds=REPAINTS, warmup=0, versions=versions())
            largest = run(LARGEST, lambda: max(sizes), rounds=1, warmup=0, versions=versions())
            return [usual, largest, run(CPU, lambda: burden(terminal), rounds=WINDOWS, versions=versions())]
    finally:
        subprocess.run([*COMMAND, "jobs", "cancel", job], env=surroundings(scratch), stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure both and keep the records."""
    with tempfile.TemporaryDirectory(prefix="bench-live-") as folder:
        os.chdir(folder)
        os.environ[ACTIONS_PATH] = str(ACTIONS)
        finish(*idle(Path(folder)), *live(Path(folder)))


if __name__ == "__main__":
    main()
