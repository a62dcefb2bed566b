"""`hfbench gpus explain` and jobs that run out of memory, with an NVML that plays a part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOYS = Path(__file__).parent / "toys"
GIB, MIB = 2**30, 2**20


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


def hfbench(environment: dict[str, str], *words: str, code: int = 0) -> Any:
    """What a command prints as JSON, or its complaint."""
    done = subprocess.run(
        [sys.executable, "-m", "hfbench", *words, "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else done.stderr


@pytest.mark.parametrize("how", ["bare", "wrapped"])
def test_a_job_that_ran_out_is_explained_by_itself_and_by_the_command(
    environment: dict[str, str], home: Path, tmp_path: Path, how: str
) -> None:
    (tmp_path / "rules").write_text(f"process 1 {os.getpid()} C 30720\n")
    hfbench(environment, "toy", "oom", "--how", how, code=1)
    [folder] = (home / "jobs").glob("*-toy.oom-*")
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    failed = events[-1]
    assert failed["kind"] == "failed"
    assert failed["error"]["found"].startswith(
        "out of device memory: other processes hold memory of this device: they hold 30.0 GiB: "
        f"pid {os.getpid()} 30.0 GiB"
    )
    assert "OutOfMemoryError: CUDA out of memory" in (folder / "output.log").read_text()
    told = hfbench(environment, "gpus", "explain", "--job", folder.name)
    [explanation] = told["explanations"]
    assert explanation["causes"][0]["id"] == "other-processes"
    assert explanation["picture"]["request"] == 20 * GIB
    assert explanation["sources"] == ["error of torch 2.1", "driver (NVML)"]
    assert told["failed"] is True


def test_without_its_explanation_a_job_is_explained_by_its_log(environment: dict[str, str], home: Path) -> None:
    hfbench(environment, "toy", "oom", code=1)
    [folder] = (home / "jobs").glob("*-toy.oom-*")
    (folder / "artifacts" / "memory.json").unlink()
    [explanation] = hfbench(environment, "gpus", "explain", "--job", "last")["explanations"]
    assert explanation["picture"]["request"] == 20 * GIB


def test_a_job_that_failed_otherwise_has_nothing_to_explain(environment: dict[str, str], home: Path) -> None:
    hfbench(environment, "toy", "oom", "--how", "other", code=1)
    told = hfbench(environment, "gpus", "explain", "--job", "last")
    assert told["explanations"] == []
    assert "nothing it wrote tells of device memory" in told["reason"]


def test_every_device_is_told_as_it_is_now(environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text(f"process 0 {os.getpid()} C 4096\nprocess 0 999999 C -1\n")
    told = hfbench(environment, "gpus", "explain")
    first, second = (each["picture"] for each in told["explanations"])
    assert {each["pid"]: each["bytes"] for each in first["others"]} == {os.getpid(): 4 * GIB, 999999: None}
    assert second["others"] == []
    assert first["total"] > first["free"] > 0
    assert told["failed"] is False


def test_a_process_is_told_apart_from_the_others(environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text(f"process 1 {os.getpid()} C 4096\nprocess 1 {os.getppid()} C 512\n")
    [told] = hfbench(environment, "gpus", "explain", "--pid", str(os.getpid()))["explanations"]
    assert told["picture"]["process_used"] == 4 * GIB
    assert [(each["pid"], each["bytes"]) for each in told["picture"]["others"]] == [(os.getppid(), 512 * MIB)]
    assert told["picture"]["reserved"] is None
    assert told["notes"] == ["what torch reserved is known to its own process only"]


def test_bad_requests_are_sentences(environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    text = hfbench(environment, "gpus", "explain", "--pid", "999999", code=2)
    assert "no device lists process 999999" in str(text)
    text = hfbench(environment, "gpus", "explain", "--pid", "1", "--log", "x", code=2)
    assert "log and pid were given" in str(text)
    text = hfbench(environment, "gpus", "explain", "--log", str(tmp_path / "absent"), code=1)
    assert "No such file" in str(text)
    text = hfbench(environment, "gpus", "explain", "--snapshot", str(tmp_path / "rules"), code=1)
    assert "is no snapshot" in str(text)


def test_without_a_driver_the_command_asks_for_what_needs_none(home: Path, broken_nvml_folder: Path) -> None:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(broken_nvml_folder)}
    assert "give --job, --snapshot or --log" in str(hfbench(environment, "gpus", "explain", code=4)).lower()


def test_a_divided_card_tells_the_slice_and_the_card(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("mig 1 2\n")
    code = (
        "import json; from hfbench.codec import encode; from hfbench.gpu.telemetry import Sampler;"
        "from hfbench.gpu.explain.reading import device_picture, find_reading;"
        "seen = Sampler().sample(); uuid = seen.devices[1].mig.instances[0].uuid;"
        "device, slice = find_reading(seen, uuid); print(json.dumps(encode(device_picture(device, 1, slice=slice))))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["total"] == 12 * GIB
    assert told["card_total"] > told["total"]
