"""Keys pressed while a checkpoint of 90,000 tensors is opened, and the time until all of its rows are there."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from claims import Claim, finish, run, wall
from make_big_checkpoint import make
from terminal import Terminal
from workbench import in_terminal, surroundings, versions

PEER = (sys.executable, str(Path(__file__).resolve().parent / "peers" / "parse_headers.py"))
SHARDS = 163
TABS = ("Config", "Tokenizer", "Tensors", "Files", "Overview")
"""What `]` brings to the front, in turn; the tab in front stands in brackets."""

PAUSE = 0.03
"""Seconds between an answer and the next key."""

ROUNDS = 7

ANSWER = Claim(
    name="answer-while-opening",
    sentence="while 90,000 tensors are read, another tab is in front within 50 ms of its key",
    bound=0.050,
)
ANSWER_RATIO = Claim(
    name="answer-while-opening-ratio",
    sentence="while 90,000 tensors are read, another tab takes at most twice as long as when nothing is read",
    bound=2.0,
)
OPEN = Claim(
    name="open-in-workbench",
    sentence="90,000 tensors are there after at most 3 times what importing Textual and parsing their headers takes",
    bound=3.0,
)
CLAIMS = (ANSWER, ANSWER_RATIO, OPEN)


@dataclass
class Opening:
    """Opens a folder in the workbench, again and again; keeps what the keys took meanwhile and afterwards."""

    scratch: Path
    folder: Path
    tensors: int
    meanwhile: list[float] = field(default_factory=list)
    at_rest: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        """Seconds from the command to the last of the rows, with a key pressed all the time."""
        with in_terminal(self.scratch, str(self.folder)) as terminal:
            terminal.wait_for("[Overview]")
            keys = self._press_until_read(terminal)
            seconds = time.perf_counter() - terminal.started
            terminal.drain(0.5)
            for number in range(keys, keys + 2 * len(TABS)):
                self.at_rest.append(terminal.answer("]", tab(number)).seconds)
                terminal.drain(PAUSE)
        return seconds

    def _press_until_read(self, terminal: Terminal) -> int:
        done, until = f"{self.tensors:,} tensors".encode(), time.perf_counter() + 120
        number = 0
        while time.perf_counter() < until:
            painted = terminal.answer("]", tab(number))
            number += 1
            output = painted.output + terminal.drain(PAUSE)
            if done in output:
                return number
            self.meanwhile.append(painted.seconds)
        raise TimeoutError("the rows never came")


def tab(number: int) -> str:
    """How the tab looks that the key number `number` brings to the front."""
    return f"[{TABS[number % len(TABS)]}]"


def main() -> None:
    """Open it some times; all keys of all times are one sample."""
    with tempfile.TemporaryDirectory(prefix="bench-opening-") as name:
        scratch = Path(name)
        os.chdir(scratch)
        tensors = make(scratch / "big", shards=SHARDS)
        opening = Opening(scratch, scratch / "big", tensors)
        words = [*PEER, str(scratch / "big")]
        parse = wall(lambda: subprocess.run(words, env=surroundings(scratch), stdout=subprocess.DEVNULL, check=True))
        opened = run(OPEN, opening, parse, rounds=ROUNDS, versions=versions(), notes={"tensors": tensors})
        meanwhile, at_rest = opening.meanwhile, opening.at_rest[-len(opening.meanwhile) :]
        notes = {
            "p95": statistics.quantiles(meanwhile, n=20)[-1],
            "max": max(meanwhile),
            "keys": len(meanwhile),
            "tensors": tensors,
        }
        answers, again, rests = iter(meanwhile), iter(meanwhile), iter(at_rest)
        count = min(len(meanwhile), len(at_rest))
        first = run(ANSWER, lambda: next(answers), rounds=len(meanwhile), warmup=0, versions=versions(), notes=notes)
        print(f"  p95 {notes['p95'] * 1e3:.0f} ms, slowest {notes['max'] * 1e3:.0f} ms of {len(meanwhile)} keys")
        ratio = run(ANSWER_RATIO, lambda: next(again), lambda: next(rests), rounds=count, warmup=0, versions=versions())
    finish(opened, first, ratio)


if __name__ == "__main__":
    main()
