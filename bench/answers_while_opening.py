"""Keys pressed while a checkpoint of 90,000 tensors is opened, and the time until all of its rows are there."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from claims import Claim, finish, run
from make_big_checkpoint import make
from workbench import in_terminal, versions

SHARDS = 163
TABS = ("Config", "Tokenizer", "Tensors", "Files", "Overview")
"""What `]` brings to the front, in turn; the tab in front stands in brackets."""

PAUSE = 0.03
"""Seconds between an answer and the next key."""

ROUNDS = 5

ANSWER = Claim(
    name="answer-while-opening",
    sentence="while 90,000 tensors are read, another tab is painted within 50 ms of its key",
    bound=0.050,
)
OPEN = Claim(
    name="open-in-workbench",
    sentence="all 90,000 tensors of 163 shards are there 6 s after the command was typed",
    bound=6.0,
)
CLAIMS = (ANSWER, OPEN)


def opening(scratch: Path, folder: Path, tensors: int) -> tuple[float, list[float]]:
    """Seconds until everything is read, and seconds each key took to be answered meanwhile."""
    answers: list[float] = []
    done = f"{tensors:,} tensors".encode()
    with in_terminal(scratch, str(folder)) as terminal:
        terminal.wait_for("[Overview]")
        for number in range(1000):
            painted = terminal.answer("]", f"[{TABS[number % len(TABS)]}]")
            answers.append(painted.seconds)
            if done in painted.output + terminal.drain(PAUSE):
                return time.perf_counter() - terminal.started, answers
    raise TimeoutError("the rows never came")


def main() -> None:
    """Open it some times; all keys of all times are one sample."""
    with tempfile.TemporaryDirectory(prefix="bench-opening-") as scratch:
        os.chdir(scratch)
        folder = Path(scratch) / "big"
        tensors = make(folder, shards=SHARDS)
        opening(Path(scratch), folder, tensors)
        openings = [opening(Path(scratch), folder, tensors) for _ in range(ROUNDS)]
        seconds = iter([taken for taken, _ in openings])
        answers = [each for _, every in openings for each in every]
        notes = {
            "p95": statistics.quantiles(answers, n=20)[-1],
            "max": max(answers),
            "keys": len(answers),
            "tensors": tensors,
        }
        each = iter(answers)
        answer = run(ANSWER, lambda: next(each), rounds=len(answers), warmup=0, versions=versions(), notes=notes)
        print(f"  p95 {notes['p95'] * 1e3:.0f} ms, slowest {notes['max'] * 1e3:.0f} ms of {len(answers)} keys")
        opened = run(OPEN, lambda: next(seconds), rounds=ROUNDS, warmup=0, versions=versions(), notes=notes)
    finish(answer, opened)


if __name__ == "__main__":
    main()
