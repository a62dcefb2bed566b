"""A trial load tells what the runtime did, whatever becomes of its process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.engines.trial import attempt as attempts
from hfbench.engines.trial.attempt import attempt

PYTHON = (sys.executable,)
TRT_TAG = "Version tag does not match. Note: Current Version: 240, Serialized Engine Version: 239"
Hfbench = Callable[..., subprocess.CompletedProcess[str]]
Changed = Callable[[Callable[[str, bytes], bytes]], Path]


def shell(script: str) -> tuple[str, ...]:
    """A stand-in for a Python: what is asked of it become words that the script leaves unread."""
    return ("/bin/sh", "-c", script)


def test_the_runtimes_warning_of_other_vectors_is_named(changed: Changed) -> None:
    def other(name: str, content: bytes) -> bytes:
        if not name.endswith("_metadata.json"):
            return content
        return json.dumps(json.loads(content) | {"AOTI_CPU_ISA": "AVX99"}).encode()

    trial = attempt(changed(other), "aoti", command=PYTHON, size=0)
    assert trial.outcome == "loaded"
    assert [(each.id, each.fatal) for each in trial.reasons] == [("cpu-isa", False)]


def test_code_that_crashes_the_loader_is_told_by_its_signal(hfbench: Hfbench, changed: Changed) -> None:
    def zeroed(name: str, content: bytes) -> bytes:
        return content[:4096] + bytes(len(content) - 4096) if name.endswith(".so") else content

    path = changed(zeroed)
    done = hfbench("engine", "check", path, "--load", "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["verdict"]) == (1, "will not load")
    assert result["trial"]["outcome"] == "crashed"
    assert result["trial"]["signal"] in ("SIGSEGV", "SIGBUS", "SIGABRT")
    assert result["trial"]["remedy"]


def test_a_real_package_loads(hfbench: Hfbench, package: Path) -> None:
    done = hfbench("engine", "check", package, "--load")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("loads here\n")
    assert "trial load: loaded" in done.stdout


def test_an_engine_that_hfbench_built_makes_tokens_and_a_broken_one_is_not_tried(
    hfbench: Hfbench, built_engine: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(built_engine("aoti"), tmp_path / "engine"))
    done = hfbench("engine", "check", folder, "--load", "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["verdict"]) == (0, "loads here"), result
    assert "made 2 tokens from a prompt of 1" in result["trial"]["found"]
    weights = folder / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    broken = json.loads(hfbench("engine", "check", folder, "--load", "--json").stdout)
    assert broken["headline"] == "will not load: files"
    assert broken["trial"]["outcome"] == "could not"


def test_a_python_without_torch_says_nothing_of_the_engine(package: Path) -> None:
    trial = attempt(package, "aoti", command=(sys.executable, "-I", "-S"), size=0)
    assert trial.outcome == "could not"
    assert "lacks torch" in trial.found


@pytest.mark.parametrize("name", ["ILL", "SEGV", "ABRT", "BUS", "KILL"])
def test_every_death_has_its_meaning(tmp_path: Path, name: str) -> None:
    trial = attempt(tmp_path, "aoti", command=shell(f"kill -{name} $$"), size=0)
    assert (trial.outcome, trial.signal) == ("crashed", f"SIG{name}")
    assert trial.remedy


def test_what_the_runtime_said_before_it_died_counts_for_more_than_the_signal(tmp_path: Path) -> None:
    trial = attempt(tmp_path, "plan", command=shell(f"echo '{TRT_TAG}' >&2; kill -ABRT $$"), size=0)
    assert trial.signal == "SIGABRT"
    assert "another TensorRT built the plan" in trial.found
    assert trial.log[-1].startswith("Version tag")


def test_a_refusal_is_named(tmp_path: Path) -> None:
    trial = attempt(tmp_path, "plan", command=shell(f"echo '{TRT_TAG}'; exit 1"), size=0)
    assert (trial.outcome, [each.id for each in trial.reasons]) == ("refused", ["tensorrt-version-tag"])


PLAYED_TENSORRT = """
import sys
class Logger:
    INFO = 1
    def __init__(self, level): pass
class Runtime:
    def __init__(self, logger): pass
    def deserialize_cuda_engine(self, data):
        if data == b"mine":
            return object()
        sys.stderr.write("[TRT] [E] 6: The engine plan file is generated on an incompatible device, "
                         "expecting compute 8.6 got compute 8.0, please rebuild.\\n")
"""


@pytest.mark.parametrize(("plans", "outcome"), [((b"mine", b"mine"), "loaded"), ((b"mine", b"other"), "refused")])
def test_plans_are_deserialised_one_by_one_by_a_played_tensorrt(
    tmp_path: Path, plans: tuple[bytes, ...], outcome: str
) -> None:
    """The module plays TensorRT's part: it takes its own plans and prints TensorRT's message for others."""
    (tmp_path / "tensorrt.py").write_text(PLAYED_TENSORRT)
    for rank, plan in enumerate(plans):
        (tmp_path / f"rank{rank}.engine").write_bytes(plan)
    command = ("/usr/bin/env", f"PYTHONPATH={tmp_path}", *PYTHON)
    trial = attempt(tmp_path, "trtllm", command=command, size=0)
    assert trial.outcome == outcome, trial.log
    if outcome == "refused":
        assert "built for compute capability 8.0, this GPU has 8.6" in trial.found


def test_a_loader_that_says_nothing_is_told_by_its_exit(tmp_path: Path) -> None:
    assert "ended with 3 and said nothing" in attempt(tmp_path, "plan", command=shell("exit 3"), size=0).found


def test_a_loader_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    trial = attempt(tmp_path, "plan", command=shell(f"sleep 60 & echo $! > {mark}; wait"), size=0, patience=0.5)
    assert trial.outcome == "late"
    assert_gone(int(mark.read_text()))


def test_what_a_loader_leaves_behind_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    attempt(tmp_path, "plan", command=shell(f"sleep 60 & echo $! > {mark}"), size=0)
    assert_gone(int(mark.read_text()))


def test_what_a_loader_sends_out_of_its_group_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    leaving = f"setsid sh -c 'echo $$ > {mark}; exec sleep 60' & while [ ! -s {mark} ]; do :; done"
    attempt(tmp_path, "plan", command=shell(leaving), size=0)
    assert_gone(int(mark.read_text()))


def test_a_log_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MOST_LOG", 1 << 20)
    trial = attempt(tmp_path, "plan", command=shell("exec yes"), size=0)
    assert (trial.outcome, trial.found) == ("late", "its runtime wrote a log without end")
    assert len(trial.log) <= attempts.TAIL


def test_a_python_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    trial = attempt(tmp_path, "plan", command=(str(tmp_path / "none"),), size=0)
    assert (trial.outcome, trial.found) == ("could not", "the Python cannot be started: No such file or directory")


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    attempt(tmp_path, "plan", command=shell("touch $TMPDIR/litter; kill -SEGV $$"), size=0)
    assert os.listdir(tmp_path) == []


def assert_gone(pid: int) -> None:
    """The process ends within a second: it was killed, and whoever adopted it reaps it."""
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except OSError:
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} still runs")
