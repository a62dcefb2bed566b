"""`hfbench inspect` on 90,427 tensors in 200 files: wall, CPU and memory, beside other ways to list them.

Two peers come from the package index; they are left out, and said to be, where it cannot be reached.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from claims import Claim, Measure, Record, finish, run
from peers.installed import command_of
from workbench import COMMAND, surroundings, versions

FILES = 200
PEERS = Path(__file__).resolve().parent / "peers"
WHAT = "listing 90,000 tensors in 200 files"
ROUNDS = 11

LONGEST = 60.0
"""Seconds after which a peer is stopped; what it has used by then counts as its cost."""

WALL = Claim(name="list-wall", sentence=f"{WHAT} takes at most half a second", bound=0.5)
MEMORY = Claim(name="list-memory", sentence=f"{WHAT} holds at most 150 MiB", bound=150 * 2**20, unit="B")
BARE = Claim(
    name="list-bare",
    sentence=f"{WHAT} costs at most 1.5 times the CPU of parsing all headers as JSON and keeping them",
    bound=1.5,
    unit="s CPU",
)
SAFE_OPEN = Claim(
    name="list-safe-open",
    sentence=f"{WHAT} costs at most the CPU of asking safetensors' safe_open for keys, dtypes and shapes",
    bound=1.0,
    unit="s CPU",
)
SFT = Claim(
    name="list-sft-cli",
    sentence=f"{WHAT} costs at most half the CPU of sft ls, which counts them a file at a time",
    bound=0.5,
    unit="s CPU",
)
MODELINFO = Claim(
    name="list-modelinfo-cli",
    sentence=f"{WHAT} costs at most a twentieth of the CPU of modelinfo, stopped after a minute",
    bound=0.05,
    unit="s CPU",
)


@dataclass
class Program:
    """Runs a command to its end, again and again, and keeps what each run cost."""

    words: list[str]
    variables: dict[str, str]
    walls: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        """CPU seconds of one run, of the processes that it waits for too."""
        begin = time.perf_counter()
        started = subprocess.Popen(
            self.words, env=self.variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
        )
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(started.pid, signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        _, status, usage = os.wait4(started.pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode not in (0, -signal.SIGKILL):
            raise RuntimeError(f"{self.words[:4]} ended with {started.returncode}")
        self.walls.append(time.perf_counter() - begin)
        self.peaks.append(usage.ru_maxrss * 1024.0)
        return usage.ru_utime + usage.ru_stime


def told(values: list[float]) -> Measure:
    """Hands out what was measured already."""
    given = iter(values)
    return lambda: next(given)


def measured(folder: Path, scratch: Path, tensors: int) -> Iterator[Record]:
    """A record for every claim whose peer can be had."""
    variables = surroundings(scratch)
    notes = {"tensors": tensors, "files": FILES}
    ours = Program([*COMMAND, "inspect", str(folder), "--json"], variables)

    def beside(claim: Claim, words: list[str], rounds: int = ROUNDS) -> Record:
        peer = Program(words, variables)
        record = run(claim, ours, peer, rounds=rounds, warmup=int(rounds > 1), versions=versions(), notes=notes)
        peak = statistics.median(peer.peaks) / 2**20
        print(f"  the peer takes {statistics.median(peer.walls):.2f} s on the wall and {peak:.0f} MiB")
        return record

    yield beside(BARE, [sys.executable, str(PEERS / "bare_headers.py"), str(folder)])
    if all(map(find_spec, ("safetensors", "numpy"))):
        yield beside(SAFE_OPEN, [sys.executable, str(PEERS / "safe_open_headers.py"), str(folder)])
    else:
        print(f"left out: {SAFE_OPEN.sentence}; safetensors and numpy are not installed")
    files = [str(path) for path in sorted(folder.glob("*.safetensors"))]
    for claim, package, command, rounds in (
        (SFT, "sft-cli==0.2.2", ["sft", "ls"], ROUNDS),
        (MODELINFO, "modelinfo-cli==1.4.4", ["modelinfo"], 1),
    ):
        found = command_of(package, command[0])
        if isinstance(found, Path):
            yield beside(claim, [str(found), *command[1:], *files], rounds)
        else:
            print(f"left out: {claim.sentence}; {found}")
    for claim, kept in ((WALL, ours.walls), (MEMORY, ours.peaks)):
        yield run(claim, told(kept), rounds=len(kept), warmup=0, versions=versions(), notes=notes)


def main() -> None:
    """Make the checkpoint, measure everything, keep the records."""
    with tempfile.TemporaryDirectory(prefix="bench-listing-") as name:
        scratch = Path(name)
        os.chdir(scratch)
        # In a process of its own: what this one holds would count as the peak of those it starts.
        words = [sys.executable, str(PEERS.parent / "make_big_checkpoint.py"), str(scratch / "big"), str(FILES)]
        made = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        finish(*measured(scratch / "big", scratch, int(made.split()[0])))


if __name__ == "__main__":
    main()
