"""The workbench on a slow line: when a key's answer has arrived, and how much of the line a running job leaves free."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from claims import Claim, Measure, Record, finish, run
from workbench import COMMAND, fill_with_jobs, surroundings, versions

from hfbench.actions.registry import ACTIONS_PATH

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "terminal"))
from line import BITS, Line  # the line that the tests have

ACTIONS = Path(__file__).resolve().parent / "actions"
QUIET = 0.4
"""Seconds of silence after which a repaint has arrived."""

LONGEST = 30.0
KEYS = ("\x1b[B", "\x1b[A") * 4
WATCHED = 20.0
"""Seconds over which a running job is watched."""

CURSOR_9600 = Claim(
    name="line-9600-cursor",
    sentence="at 9600 baud the answer to a cursor key has arrived after one second",
    bound=1.0,
)
SCREEN_9600 = Claim(
    name="line-9600-screen",
    sentence="at 9600 baud another screen has arrived after five seconds",
    bound=5.0,
)
SCREEN_115200 = Claim(
    name="line-115200-screen",
    sentence="at 115200 baud another screen has arrived after two seconds",
    bound=2.0,
)
LIVE_9600 = Claim(
    name="line-9600-live-job",
    sentence="at 9600 baud the page of a running job leaves at least two fifths of the line free",
    bound=0.60,
    unit="of the line",
)
LIVE_115200 = Claim(
    name="line-115200-live-job",
    sentence="at 115200 baud the page of a running job leaves at least two fifths of the line free",
    bound=0.60,
    unit="of the line",
)
LIVE_KEY_9600 = Claim(
    name="line-9600-live-key",
    sentence="at 9600 baud a key is answered within three seconds while the page of a running job repaints",
    bound=3.0,
)
CLAIMS = (CURSOR_9600, SCREEN_9600, SCREEN_115200, LIVE_9600, LIVE_115200, LIVE_KEY_9600)


def opened(scratch: Path, baud: int) -> Line:
    """The workbench in 80x24 on a line of that speed."""
    return Line([*COMMAND, "--baud", str(baud)], surroundings(scratch), baud=baud)


def arrived(line: Line, keys: str) -> float:
    """Seconds from keys to the last byte of what they paint, once there was silence."""
    began = last = time.monotonic()
    line.press(keys)
    while time.monotonic() - last < QUIET or last == began:
        if line.read(0.02):
            last = time.monotonic()
        if time.monotonic() - began > LONGEST:
            raise TimeoutError(f"{keys!r} still paints after {LONGEST:g} s")
    return last - began


def measure(line: Line, keys: Sequence[str]) -> Measure:
    """Measures one key after the other."""
    rest = iter(keys)
    return lambda: arrived(line, next(rest))


def still(scratch: Path) -> list[Record]:
    """Screens that wait for keys."""
    fill_with_jobs(scratch / "home", 12)
    records = []
    for baud, screen in ((9600, SCREEN_9600), (115200, SCREEN_115200)):
        with opened(scratch, baud) as line:
            line.wait("no GPU", 120)
            line.read(3.0)
            records.append(run(screen, measure(line, "21" * 20), rounds=6, warmup=2, versions=versions()))
            if baud == 9600:
                line.press("2")
                line.read(6.0)
                records.append(run(CURSOR_9600, measure(line, KEYS), rounds=6, warmup=1, versions=versions()))
    return records


def live(scratch: Path) -> list[Record]:
    """The page of a job with ten metrics a second."""
    words = [*COMMAND, "ticks", "--seconds", "300", "--detach"]
    started = subprocess.run(words, env=surroundings(scratch), check=True, capture_output=True, text=True)
    job, records = started.stdout.strip(), []
    try:
        for baud, claim in ((9600, LIVE_9600), (115200, LIVE_115200)):
            with opened(scratch, baud) as line:
                line.wait("no GPU", 120)
                line.read(2.0)
                line.press("2")
                line.wait(job[-6:])
                line.read(3.0)
                line.press("\r")
                line.wait("p50", 60)
                line.read(5.0)
                share = len(line.read(WATCHED)) / WATCHED / (baud / BITS)
                records.append(run(claim, lambda share=share: share, rounds=1, warmup=0, versions=versions()))
                if baud == 9600:
                    records.append(run(LIVE_KEY_9600, lambda: answered(line), rounds=5, warmup=1, versions=versions()))
    finally:
        subprocess.run([*COMMAND, "jobs", "cancel", job], env=surroundings(scratch), stdout=subprocess.DEVNULL)
    return records


def answered(line: Line) -> float:
    """Seconds until the next pane is told, from some moment of a page that repaints."""
    line.read(1.7)
    before = [row for row in line.screen.display if row.split() and row.split()[0] in PANES]
    began = time.monotonic()
    line.press("l")
    while [row for row in line.screen.display if row.split() and row.split()[0] in PANES] == before:
        line.read(0.02)
        if time.monotonic() - began > LONGEST:
            raise TimeoutError("the pane never changed")
    return time.monotonic() - began


PANES = ("result", "log", "output", "environment", "request")


def main() -> None:
    """Measure everything and keep the records."""
    with tempfile.TemporaryDirectory(prefix="bench-line-") as folder:
        os.chdir(folder)
        os.environ[ACTIONS_PATH] = str(ACTIONS)
        records = [*still(Path(folder)), *live(Path(folder))]
        print("  " + ", ".join(f"{each.claim.name} {statistics.median(each.subject):.2f}" for each in records))
        finish(*records)


if __name__ == "__main__":
    main()
