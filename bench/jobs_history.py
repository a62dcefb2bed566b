"""Ten thousand jobs in the history: opening the Jobs screen, filtering it, and keeping it while nothing happens."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from claims import Claim, Record, finish, run
from live_job import burden
from terminal import Terminal
from workbench import FIRST_FRAME, fill_with_jobs, in_terminal, versions

from hfbench.jobs.history import History

JOBS = 10_000
MODELS = 12
FILES = ("request.json", "events.jsonl", "result.json")
WORDS = ("model-7", "generate", "finished", "zzz")
"""Typed into the filter: some rows, all rows, none."""

PAINT = Claim(
    name="jobs-first-paint",
    sentence=f"the Jobs screen shows the newest of {JOBS:,} jobs at most 300 ms after its key",
    bound=0.300,
)
FILTER = Claim(
    name="jobs-filter",
    sentence=f"a key in the filter of {JOBS:,} jobs is answered within 50 ms",
    bound=0.050,
)
FILTER_SLOWEST = Claim(
    name="jobs-filter-slowest",
    sentence=f"no key in the filter of {JOBS:,} jobs waits longer than 100 ms",
    bound=0.100,
)
IDLE = Claim(
    name="jobs-idle-cpu",
    sentence=f"looking at {JOBS:,} jobs that are over takes at most a twentieth of a processor",
    bound=0.050,
    unit="s CPU a second",
)
CLAIMS = (PAINT, FILTER, FILTER_SLOWEST, IDLE)


def fill(home: Path, count: int = JOBS) -> str:
    """Write so many finished jobs, whose files are links to those of a few; the short id of the newest."""
    fill_with_jobs(home, MODELS)
    patterns = sorted((home / "jobs").iterdir())
    began = datetime.now(UTC) - timedelta(minutes=count)
    for number in range(count - MODELS):
        stamp = (began + timedelta(minutes=number)).strftime("%Y-%m-%dT%H-%M-%S")
        folder = home / "jobs" / f"{stamp}-bench.generate-{number:06x}"
        folder.mkdir()
        for name in FILES:
            os.link(patterns[number % MODELS] / name, folder / name)
    with closing(History(home / "jobs")) as history:
        return history.rows(1)[0].short_id


def first_paint(scratch: Path, newest: str) -> float:
    """Seconds from the key to the newest job."""
    with in_terminal(scratch) as terminal:
        terminal.wait_for(FIRST_FRAME)
        terminal.wait_until_idle()
        return terminal.answer("2", newest).seconds


def filtering(terminal: Terminal) -> list[float]:
    """Seconds from each letter of WORDS to what it paints."""
    seconds = []
    for word in WORDS:
        terminal.press("/")
        seconds += [terminal.press(letter).seconds for letter in word]
        terminal.press("escape")
        terminal.drain(0.3)
    return seconds


def main() -> None:
    """Measure and keep the records."""
    with tempfile.TemporaryDirectory(prefix="bench-jobs-") as folder:
        scratch = Path(folder)
        os.chdir(scratch)
        newest = fill(scratch / "home")
        records: list[Record] = [run(PAINT, lambda: first_paint(scratch, newest), rounds=7, versions=versions())]
        with in_terminal(scratch) as terminal:
            terminal.wait_for(FIRST_FRAME)
            terminal.wait_until_idle()
            terminal.answer("2", newest)
            terminal.drain(1.0)
            measured = filtering(terminal)
            each = iter(measured)
            records.append(run(FILTER, lambda: next(each), rounds=len(measured), warmup=0, versions=versions()))
            records.append(run(FILTER_SLOWEST, lambda: max(measured), rounds=1, warmup=0, versions=versions()))
            records.append(run(IDLE, lambda: burden(terminal), rounds=7, versions=versions()))
        finish(*records)


if __name__ == "__main__":
    main()
