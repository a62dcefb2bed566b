"""kill -9 at ten random points of the real command, each way: the same command again ends bit-identical."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import command
from hf_models import checkpoint, written

from hfbench.actions.convert_hf import ConvertHf
from hfbench.actions.convert_megatron import ConvertMegatron
from hfbench.convert.stream import manifest
from hfbench.jobs.run import Run

KILLS, FURTHEST = 10, 60
"""Times a conversion is killed, and the most tensors that it lands before it is."""


def killed(words: list[str | Path], out: Path, further: int, victim: int) -> None:
    """Start the command, and kill it or a process below it when so many tensors more have landed.

    Processes are the command, the supervisor of its job and the one that works, in this order.
    """
    working = out.with_name(f".{out.name}.partial") / manifest.WORKING
    least = lines_in(working) + further
    started = subprocess.Popen(command(words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while started.poll() is None and lines_in(working) < least:
        time.sleep(0.001)
    family = [started.pid, *below(started.pid)]
    for pid in family if victim < 0 else family[victim : victim + 1]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    started.wait(60)
    while any(map(alive, family)):  # a supervisor's end takes the working process along
        time.sleep(0.001)


def below(pid: int) -> list[int]:
    """A child, its child, and so on."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(found[0]), *below(int(found[0]))] if found else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def lines_in(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def everything(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


@pytest.mark.parametrize("way", ["megatron", "hf"])
def test_killed_ten_times_it_ends_bit_identical(way: str, tmp_path: Path) -> None:
    model, out, calm = written(tmp_path / "model", checkpoint("llama", num_hidden_layers=80)), tmp_path / "out", "calm"
    ConvertMegatron(model=str(model), out=tmp_path / calm, tp=2, pp=2).perform(Run())
    words: list[str | Path] = ["convert", "megatron", model, "--tp", "2", "--pp", "2", "--out", out]
    if way == "hf":
        words, calm = ["convert", "hf", tmp_path / calm, "--max-shard-size", "100KiB", "--out", out], "back"
        ConvertHf(checkpoint=tmp_path / "calm", out=tmp_path / calm, max_shard_size="100KiB").perform(Run())
    wanted, source, kills, midway = everything(tmp_path / calm), random.Random(way), 0, 0
    while kills < KILLS:
        killed(words, out, source.randrange(1, FURTHEST), source.choice([2, 2, 1, -1]))
        kills += not out.exists()
        midway += lines_in(out.with_name(".out.partial") / manifest.WORKING) > 1
        if out.exists():  # it was quicker
            assert everything(out) == wanted
            shutil.rmtree(out)
    assert midway
    ended = subprocess.run(command(words), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert everything(out) == wanted
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith(".out")) == []
