"""What it costs to begin: `--help`, `--version`, and the first frame of the workbench beside six stock widgets."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from claims import Claim, Measure, Record, cpu, finish, run
from terminal import Terminal
from workbench import COMMAND, FIRST_FRAME, environment, fill_with_jobs, surroundings, versions

PEER = (sys.executable, str(Path(__file__).resolve().parent / "peers" / "six_widgets.py"))
PEER_FRAME = "model.layers.0"
JOBS = 200

TIMES = 4.0
"""`python -c pass` takes 12 to 24 ms, as the machine is."""

HELP = Claim(
    name="help",
    sentence=f"hfbench --help costs at most {TIMES:g} times the CPU of `python -c pass`",
    bound=TIMES,
    unit="s CPU",
)
BUDGET = Claim(name="help-budget", sentence="hfbench --help costs at most 60 ms of CPU", bound=0.060, unit="s CPU")
VERSION = Claim(
    name="version",
    sentence=f"hfbench --version costs at most {TIMES:g} times the CPU of `python -c pass`",
    bound=TIMES,
    unit="s CPU",
)
FRAME = Claim(
    name="first-frame-cpu",
    sentence="the first frame costs at most 1.3 times the CPU of an application of six widgets",
    bound=1.3,
    unit="s CPU",
)
FRAME_JOBS = Claim(
    name="first-frame-cpu-jobs",
    sentence=f"the first frame with {JOBS} jobs costs at most 1.3 times the CPU of an application of six widgets",
    bound=1.3,
    unit="s CPU",
)
REST = Claim(
    name="at-rest-cpu",
    sentence="until it is at rest the workbench uses at most 1.3 times the CPU of an application of six widgets",
    bound=1.3,
    unit="s CPU",
)
MEMORY = Claim(
    name="at-rest-memory",
    sentence="until it is at rest the workbench holds at most 1.3 times the memory of an application of six widgets",
    bound=1.3,
    unit="B",
)
CLAIMS = (HELP, BUDGET, VERSION, FRAME, REST, MEMORY, FRAME_JOBS)

SETTLED = 0.6
"""Seconds of silence after which a program is at rest."""


@dataclass
class Start:
    """Starts a program in a terminal, again and again. `frame` measures; `rest` and `memory` tell what it saw."""

    command: tuple[str, ...]
    mark: str
    variables: dict[str, str]
    rests: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)

    def frame(self) -> float:
        """CPU seconds until the first frame is painted."""
        with Terminal(self.command, environment=self.variables) as terminal:
            terminal.wait_for(self.mark)
            seconds = terminal.cpu_seconds()
            terminal.drain(SETTLED)
            self.rests.append(terminal.cpu_seconds())
            self.peaks.append(float(terminal.peak_bytes()))
        return seconds


def told(values: list[float]) -> Measure:
    """Hands out what was measured already, the round before the kept ones left out."""
    given: Iterator[float] = iter(values[1:])
    return lambda: next(given)


def command_claims(scratch: Path) -> list[Record]:
    """What a shell prompt, a completion or a CI job pays."""
    variables = surroundings(scratch)

    def doing(*words: str) -> Callable[[], object]:
        return lambda: subprocess.run(words, env=variables, stdout=subprocess.DEVNULL, check=True)

    nothing = cpu(doing(sys.executable, "-c", "pass"))
    records = []
    for option, claim in (("--help", HELP), ("--version", VERSION)):
        record = run(claim, cpu(doing(*COMMAND, option)), nothing, rounds=31, versions=versions())
        print(f"  {statistics.median(record.subject) * 1e3:.0f} ms, bare {statistics.median(record.peer) * 1e3:.0f} ms")
        records.append(record)
    kept = iter(records[0].subject)
    records.append(run(BUDGET, lambda: next(kept), rounds=len(records[0].subject), warmup=0, versions=versions()))
    return records


def frame_claims(scratch: Path) -> list[Record]:
    """What opening the workbench costs."""
    os.makedirs(scratch / "empty")
    subject = Start(COMMAND, FIRST_FRAME, environment(scratch, "empty"))
    peer = Start(PEER, PEER_FRAME, environment(scratch, "empty"))
    first = run(FRAME, subject.frame, peer.frame, rounds=15, versions=versions())
    rest = run(REST, told(subject.rests), told(peer.rests), rounds=15, warmup=0, versions=versions())
    memory = run(MEMORY, told(subject.peaks), told(peer.peaks), rounds=15, warmup=0, versions=versions())
    fill_with_jobs(scratch / "full", JOBS)
    full = Start(COMMAND, FIRST_FRAME, environment(scratch, "full"))
    jobs = run(FRAME_JOBS, full.frame, peer.frame, rounds=15, versions=versions())
    return [first, rest, memory, jobs]


def main() -> None:
    """Measure everything and keep the records."""
    with tempfile.TemporaryDirectory(prefix="bench-startup-") as folder:
        scratch = Path(folder)
        os.chdir(scratch)
        finish(*command_claims(scratch), *frame_claims(scratch))


if __name__ == "__main__":
    main()
