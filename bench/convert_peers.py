"""One conversion beside mbridge, which loads the same model into megatron-core and saves it; and the first wall's pace.

mbridge comes from the package index; it is left out, and said to be, where it cannot be had.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from claims import Claim, Measure, Record, finish, run
from convert import Llama
from peers.installed import python_with
from workbench import COMMAND, surroundings

import hfbench

MBRIDGE = "mbridge==0.15.1"
BEFORE = ("torch", "megatron-core", "transformers", "einops==0.8.2")
"""Installed before it: megatron-core, which it needs and does not name, einops likewise, and torch before both."""
PEERS = Path(__file__).resolve().parent / "peers"
MODEL = Llama(hidden=2048, inner=8896, heads=16, vocabulary=32768, layers=8, shard_bytes=480 << 20)
"""672 million parameters, 1.34 GB in three shards."""

MARK = "HFBENCH_BENCH_TREE"
"""A variable by which the processes of a measured command are known, also those that leave its session."""
PAUSE = 0.01

WALL = Claim(
    name="convert-mbridge",
    sentence="convert megatron of a model of 1.3 GB takes at most a fifth of what mbridge and torch.save take",
    bound=0.2,
)
MEMORY = Claim(
    name="convert-mbridge-memory",
    sentence="convert megatron of a model of 1.3 GB holds at most 0.33 of what mbridge holds",
    bound=0.33,
    unit="B",
)
WEIGHTS = Claim(
    name="verify-weights",
    sentence="verify --walls weights proves 0.5 GB for each second of CPU: a GB costs at most 2 s",
    bound=2.0,
    unit="s CPU a GB",
)


class Command:
    """Runs a command again and again, and keeps the seconds and the peak memory of each run."""

    def __init__(self, words: list[str], out: Path, variables: dict[str, str]) -> None:
        self.words, self.out, self.variables = words, out, variables
        self.walls: list[float] = []
        self.peaks: list[float] = []

    def __call__(self) -> float:
        """Seconds on the wall of one run that finds its output gone and the disk idle."""
        shutil.rmtree(self.out, ignore_errors=True)
        os.sync()
        mark = uuid.uuid4().hex
        with tempfile.TemporaryFile("w+") as said:
            began = time.perf_counter()
            started = subprocess.Popen(
                self.words, env={**self.variables, MARK: mark}, stdout=subprocess.DEVNULL, stderr=said
            )
            peaks: dict[int, int] = {}
            while started.poll() is None:
                peaks |= peaks_of(mark)
                time.sleep(PAUSE)
            self.walls.append(time.perf_counter() - began)
            said.seek(0)
            if started.returncode:
                raise RuntimeError(f"{self.words[:4]} ended with {started.returncode}: {said.read()[-500:]}")
        self.peaks.append(float(sum(peaks.values())))
        return self.walls[-1]


def peaks_of(mark: str) -> dict[int, int]:
    """Peak memory in bytes of each process with this mark in its environment: its resident set, mapped files too."""
    wanted = f"{MARK}={mark}".encode()
    found: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                if wanted in (each / "environ").read_bytes().split(b"\0"):
                    lines = (each / "status").read_text().splitlines()
                    found |= {int(each.name): int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")}
            except OSError:  # it has ended, or is somebody else's
                continue
    return found


def told(values: list[float]) -> Measure:
    """Hands out what was measured already."""
    given = iter(values)
    return lambda: next(given)


def beside_mbridge(python: Path, model: Path, variables: dict[str, str], rounds: int) -> Iterator[Record]:
    """Time and memory of the same conversion by both, after both have been seen to write the same bits."""
    ours, peers = model.with_name("ours"), model.with_name("mbridge")
    convert = [*COMMAND, "convert", "megatron", str(model), "--out", str(ours), "--names", "local", "--no-lease"]
    subject = Command([*convert, "--wait"], ours, variables)
    peer = Command([str(python), str(PEERS / "mbridge_convert.py"), str(model), str(peers)], peers, variables)
    for each in (subject, peer):
        each()  # warms both, and is not kept
    files = [str(next(folder.glob("*/mp_rank_00/model_optim_rng.pt"))) for folder in (ours, peers)]
    words = [str(python), str(PEERS / "same_tensors.py"), *files]
    same = subprocess.run(words, capture_output=True, text=True)
    if same.returncode:
        raise RuntimeError(f"the two conversions are not the same: {same.stderr[-500:]}")
    print(f"both write the same {int(same.stdout)} tensors, bit by bit")
    versions = {"hfbench": hfbench.__version__, "numpy": np.__version__, "peer": MBRIDGE}
    notes: dict[str, str | int | float] = {"bytes": Path(files[0]).stat().st_size, "cache": "warm"}
    yield run(WALL, subject, peer, rounds=rounds, warmup=0, versions=versions, notes=notes)
    for name, each in (("convert megatron", subject), ("mbridge", peer)):
        took, held = statistics.median(each.walls[1:]), statistics.median(each.peaks[1:]) / 2**20
        print(f"  {name} takes {took:.2f} s on the wall and {held:.0f} MiB")
    ones, others = told(subject.peaks[1:]), told(peer.peaks[1:])
    yield run(MEMORY, ones, others, rounds=rounds, warmup=0, versions=versions, notes=notes)


def wall_of_weights(model: Path, variables: dict[str, str], total: int, rounds: int) -> Record:
    """CPU seconds for each GB of weights, of a process that does nothing but prove them."""
    converted = model.with_name("ours")
    if not converted.exists():
        words = [*COMMAND, "convert", "megatron", str(model), "--out", str(converted), "--no-lease", "--wait"]
        subprocess.run(words, env=variables, stdout=subprocess.DEVNULL, check=True)
    fields = json.dumps({"model": str(model), "converted": str(converted), "walls": ["weights"]})
    words = [sys.executable, str(PEERS / "perform_once.py"), "verify", fields]

    def measure() -> float:
        done = subprocess.run(words, env=variables, cwd=model.parent, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-500:])
        return float(json.loads(done.stdout.splitlines()[-1])["cpu"]) / (total / 1e9)

    versions = {"hfbench": hfbench.__version__, "numpy": np.__version__}
    notes: dict[str, str | int | float] = {"bytes": total, "cache": "warm"}
    return run(WEIGHTS, measure, rounds=rounds, versions=versions, notes=notes)


def main() -> None:
    """Make the model, measure everything, keep the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to work, on the disk to measure")
    parser.add_argument("--environment", type=Path, help=f"Python that has {MBRIDGE} already")
    asked = parser.parse_args()
    python = asked.environment or python_with(MBRIDGE, BEFORE)
    with tempfile.TemporaryDirectory(prefix="bench-convert-", dir=asked.folder) as name:
        scratch = Path(name)
        variables = surroundings(scratch)
        total = MODEL.make(scratch / "model")
        records: list[Record] = []
        if isinstance(python, Path):
            records += beside_mbridge(python, scratch / "model", variables, asked.rounds)
        else:
            print(f"left out: {WALL.sentence}; {python}")
        records.append(wall_of_weights(scratch / "model", variables, total, asked.rounds))
    finish(*records)


if __name__ == "__main__":
    main()
