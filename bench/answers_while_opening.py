"""Keys pressed while a checkpoint of a million tensors is read, and how soon one of 90,000 is there as a whole."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from claims import Claim, Measure, Record, finish, run, wall
from make_big_checkpoint import laid_out, make, tensors
from terminal import Painted, Terminal
from workbench import in_terminal, surroundings, versions

from hfbench.screens.model import TABS
from hfbench.screens.model_tabs.overview import Overview
from hfbench.screens.model_tabs.tensors import TensorsTab

PEER = (sys.executable, str(Path(__file__).resolve().parent / "peers" / "parse_headers.py"))
SHARDS = 163
LAYERS, EXPERTS, FILES = 345, 485, 200
"""Of the million: 1,002,754 tensors."""

TITLES = [tab.title for tab in TABS]
"""What `]` brings to the front, in turn; the tab in front stands in brackets."""

LINES = 12
"""Cursor keys in a row: they stay within the first screenful, whose names are known."""

QUERY = "experts.38"
PAUSE = 0.03
"""Seconds between an answer and the next key."""

ROUNDS, RESTED = 7, 3
"""Openings, and how many of them go on with keys at rest."""

REST = 40
"""Keys of a kind at rest, an opening."""

OPEN = Claim(
    name="open-in-workbench",
    sentence="90,000 tensors are there after at most 3 times what importing Textual and parsing their headers takes",
    bound=3.0,
)
ANSWERS = {
    "tab": ("answer-while-reading-tab", "another tab is in front"),
    "cursor": ("answer-while-reading-cursor", "the cursor is on another tensor"),
    "filter": ("answer-while-reading-filter", "a letter of the filter is there"),
}
"""The claim about each kind of key, and what it is to bring within 20 ms."""

WITHIN = {
    kind: Claim(
        name=name,
        sentence=f"while a million tensors are read, {what} within 20 ms of its key",
        bound=0.020,
    )
    for kind, (name, what) in ANSWERS.items()
}
RATIO = Claim(
    name="answer-while-reading-ratio",
    sentence="while a million tensors are read, a key takes at most twice as long as when nothing is read",
    bound=2.0,
)


class Press(NamedTuple):
    """A key, what it is to bring, and the kind it is counted with; keys that only lead there have none."""

    key: str
    wanted: str | re.Pattern[bytes]
    kind: str = ""


@dataclass
class Keys:
    """Keys of every kind in turn, for a Model screen that shows its first tab."""

    names: list[str]
    """Of the first tensors, in the order of the table."""
    filter_at: bytes = b""
    """Where the text of the filter stands, as the terminal is told to go there."""

    def __iter__(self) -> Iterator[Press]:
        yield Press("t", re.compile(rb"\[Tensors\].*> model", re.DOTALL))
        while True:
            for number in range(1, len(TITLES) + 1):  # once round
                title = TITLES[(TITLES.index(TensorsTab.title) + number) % len(TITLES)]
                yield Press("]", f"[{title}]", "tab")
            for name in self.names[1 : LINES + 1]:
                yield Press("down", f"> {name}", "cursor")
            yield Press("/", "filter: ")
            for length in range(1, len(QUERY) + 1):
                yield Press(QUERY[length - 1], self._typed(QUERY[:length]), "filter")
            yield Press("escape", f"> {self.names[0]}")

    def look_at(self, painted: Painted) -> None:
        """Learn from what a key brought where the filter stands."""
        if found := re.search(rb"\x1b\[(\d+);(\d+)H(?:\x1b\[[\d;]*m)*filter: ", painted.output):
            self.filter_at = b"\x1b[%d;%dH" % (int(found[1]), int(found[2]) + len("filter: "))

    def _typed(self, text: str) -> re.Pattern[bytes]:
        return re.compile(re.escape(self.filter_at) + rb"(?:\x1b\[[\d;]*m)*" + re.escape(text.encode()) + rb"[\x1b ]")


@dataclass
class Opening:
    """Opens a folder again and again; keeps what the keys took meanwhile and afterwards, by kind."""

    scratch: Path
    folder: Path
    tensors: int
    names: list[str]
    """The first of the table."""
    meanwhile: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    at_rest: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, *, then_rest: bool = False) -> float:
        """Seconds from the command to the last of the rows, with a key pressed all the time."""
        with in_terminal(self.scratch, str(self.folder)) as terminal:
            terminal.wait_for(f"[{Overview.title}]")
            keys = Keys(self.names)
            presses = iter(keys)
            self._press(terminal, keys, presses, self.meanwhile, f"{self.tensors:,} tensors".encode())
            seconds = time.perf_counter() - terminal.started
            if then_rest:
                terminal.wait_until_idle()
                terminal.drain(0.5)
                self._press(terminal, keys, presses, self.at_rest, count=len(self.at_rest["tab"]) + REST)
        return seconds

    def _press(
        self,
        terminal: Terminal,
        keys: Keys,
        presses: Iterator[Press],
        kept: defaultdict[str, list[float]],
        done: bytes = b"",
        count: int = 0,
    ) -> None:
        """Press keys until `done` was painted, or until every kind was kept `count` times."""
        until = time.perf_counter() + 300
        while time.perf_counter() < until:
            press = next(presses)
            painted = terminal.answer(press.key, press.wanted)
            keys.look_at(painted)
            after = terminal.drain(PAUSE)
            if done and done in painted.output + after:
                return
            if press.kind:
                kept[press.kind].append(painted.seconds)
            if count and all(len(kept[kind]) >= count for kind in ANSWERS):
                return
        raise TimeoutError("the rows never came")


def opening(scratch: Path, name: str, files: int, *size: int) -> Opening:
    """A checkpoint of that many files, to be opened."""
    every = list(tensors(*size))
    names = [each for each, _, _ in laid_out(every[: len(every) // files])]
    return Opening(scratch, scratch / name, make(scratch / name, files, *size), names[: LINES + 1])


def replay(samples: Iterable[float]) -> Measure:
    """A measure that gives what was measured already."""
    left = iter(samples)
    return lambda: next(left)


def judged(opened: Opening) -> list[Record]:
    """The claims about keys, each kind for itself, and all of them against those at rest."""
    records = []
    for kind, claim in WITHIN.items():
        took = opened.meanwhile[kind]
        figures = {
            "p95": statistics.quantiles(took, n=20)[-1],
            "max": max(took),
            "at_rest": statistics.median(opened.at_rest[kind]),
        }
        notes = {**figures, "keys": len(took), "tensors": opened.tensors, "files": FILES}
        records.append(run(claim, replay(took), rounds=len(took), warmup=0, versions=versions(), notes=notes))
        print("  " + ", ".join(f"{name} {1e3 * value:.0f} ms" for name, value in figures.items()))
    both = (opened.meanwhile, opened.at_rest)
    count = min(len(kept[kind]) for kept in both for kind in ANSWERS)
    meanwhile, at_rest = (replay([took for kind in ANSWERS for took in kept[kind][:count]]) for kept in both)
    return [*records, run(RATIO, meanwhile, at_rest, rounds=count * len(ANSWERS), warmup=0, versions=versions())]


def main() -> None:
    """Open both some times; the keys of all times are one sample."""
    with tempfile.TemporaryDirectory(prefix="bench-opening-") as name:
        scratch = Path(name)
        os.chdir(scratch)
        large = opening(scratch, "large", FILES, LAYERS, EXPERTS)
        for number in range(ROUNDS):
            large(then_rest=number < RESTED)
        records = judged(large)
        big = opening(scratch, "big", SHARDS)
        words = [*PEER, str(big.folder)]
        parse = wall(lambda: subprocess.run(words, env=surroundings(scratch), stdout=subprocess.DEVNULL, check=True))
        opened = run(OPEN, big, parse, rounds=ROUNDS, versions=versions(), notes={"tensors": big.tensors})
    finish(*records, opened)


if __name__ == "__main__":
    main()
