"""Samples attached to a running job: metrics, a summary, and the job that a process of the card belongs to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TOYS = Path(__file__).parents[1] / "toys"
GIB = 2**30
UUID = "GPU-fab00001-aaaa-bbbb-cccc-000000000000"
HUNG = """
import json, os
from pathlib import Path
from hfbench.codec import encode
from hfbench.gpu.telemetry import WhileRunning, attach
from hfbench.jobs.run import Run
attach.FIRST_SAMPLE = attach.LAST_SAMPLE = 0.2
Path(os.environ["FAKE_NVML_SCRIPT"]).write_text({rules!r})
with WhileRunning(Run(), {device!r}) as watched:
    pass
print(json.dumps(encode(watched.use)))
"""


@pytest.fixture
def environment(fake_nvml_folder: Path, tmp_path: Path) -> dict[str, str]:
    """Of a process that sees two made-up GPUs; `tmp_path / "rules"` scripts them."""
    (tmp_path / "rules").touch()
    return {
        **{name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"},
        "HFBENCH_ACTIONS": str(TOYS),
        "LD_LIBRARY_PATH": str(fake_nvml_folder),
        "FAKE_NVML_SCRIPT": str(tmp_path / "rules"),
    }


def hfbench(*words: str) -> list[str]:
    return [sys.executable, "-m", "hfbench", *words]


def events(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def until(found: Callable[[], Any], seconds: float = 90) -> Any:
    end = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return answer


@pytest.fixture
def burning(environment: dict[str, str], home: Path, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A job on cuda:1 that runs until the second path exists; the first is its folder."""
    stop = tmp_path / "stop"
    words = hfbench("toy", "burn", "--until", str(stop), "--device", "cuda:1", "--detach", "--json")
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    [folder] = (home / "jobs").glob("*-toy.burn-*")
    try:
        yield folder, stop
    finally:
        stop.touch()
        until(lambda: any(each["kind"] in ("finished", "failed", "died") for each in events(folder)))


def test_a_job_carries_what_its_card_did(burning: tuple[Path, Path]) -> None:
    folder, stop = burning

    def powers() -> list[dict[str, Any]]:
        return [each for each in events(folder) if each["kind"] == "metric" and each["name"] == "gpu.power"]

    until(lambda: len(powers()) >= 2)
    stop.touch()
    until(lambda: (folder / "result.json").exists())
    metrics = {each["name"]: (each["value"], each["unit"]) for each in events(folder) if each["kind"] == "metric"}
    assert metrics == {
        "gpu.memory": (6 * GIB, "B"),
        "gpu.power": (312.5, "W"),
        "gpu.clock_sm": (1755, "MHz"),
        "gpu.utilization": (42, "%"),
        "gpu.temperature": (61, "C"),
    }
    use = json.loads((folder / "result.json").read_text())["result"]["gpu"]
    assert (use["device"], use["reason"]) == (UUID, "")
    assert use["samples"] >= 2
    assert use["memory_peak"] == use["memory_mean"] == 6 * GIB
    assert (use["power_peak"], use["clock_sm_min"], use["temperature_peak"]) == (312.5, 1755, 61)
    assert use["throttle"] == {"power cap": 1.0, "thermal (hardware)": 1.0}
    assert use["energy"] == 0


def test_a_process_of_the_card_names_the_job_it_works_for(
    burning: tuple[Path, Path], environment: dict[str, str], tmp_path: Path
) -> None:
    folder, _ = burning
    started = until(lambda: next((each for each in events(folder) if each["kind"] == "started"), None))
    children = Path(f"/proc/{started['pid']}/task/{started['pid']}/children")
    pids = [*until(lambda: children.read_text().split()), str(os.getpid())]
    (tmp_path / "rules").write_text("".join(f"process 1 {pid} C 100\n" for pid in pids))
    done = subprocess.run(hfbench("gpus", "--json"), env=environment, capture_output=True, text=True, timeout=120)
    processes = json.loads(done.stdout)["devices"][1]["processes"]
    jobs = {each["pid"]: each["job"] for each in processes}
    assert jobs.pop(os.getpid()) == ""
    assert set(jobs.values()) == {folder.name}


@pytest.mark.parametrize(
    ("device", "rules", "reason"),
    [
        (UUID, "nvmlInitWithFlags - 0 -1", "the driver did not answer"),
        (UUID, "* 1 15", "the GPU is lost (fell off the bus)"),
        (UUID, "nvmlInitWithFlags - 9", "the NVIDIA driver is not loaded"),
        ("GPU-of-somebody-else", "", "the driver does not show this GPU"),
        ("MIG-1", "", "a slice of a divided GPU is not sampled"),
    ],
)
def test_a_card_that_cannot_be_watched_is_a_reason(
    with_nvml: Callable[..., Any], device: str, rules: str, reason: str
) -> None:
    use = with_nvml(HUNG.format(device=device, rules=rules))
    assert (use["samples"], use["reason"]) == (0, reason)
    assert use["memory_peak"] == {"reason": reason}


def test_nothing_is_sampled_on_the_cpu(with_nvml: Callable[..., Any]) -> None:
    assert with_nvml(HUNG.format(device="cpu", rules="")) is None
