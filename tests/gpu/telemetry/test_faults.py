"""`hfbench gpus --json` through the real binding, against a library that plays each fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.exits import Exit

LOST = "the GPU is lost (fell off the bus)"
GIB = 2**30
RunGpus = Callable[..., Any]
WATCH = """
import sys
from hfbench.__main__ import main
from hfbench.gpu.telemetry.patience import Patience
run = Patience.run
def told(*arguments, **named):
    print("sampling", file=sys.stderr, flush=True)
    run(*arguments, **named)
Patience.run = told
sys.argv = sys.argv[1:]
sys.exit(main())
"""


@pytest.fixture
def hung(fake_nvml_folder: Path, tmp_path: Path) -> dict[str, str]:
    """An environment whose driver never answers the first call."""
    (tmp_path / "rules").write_text("nvmlInitWithFlags - 0 -1\n")
    told = {"HFBENCH_HOME": str(tmp_path / "home"), "LD_LIBRARY_PATH": str(fake_nvml_folder)}
    return {**os.environ, **told, "FAKE_NVML_COUNT": "1", "FAKE_NVML_SCRIPT": str(tmp_path / "rules")}


def test_a_closed_pipe_ends_the_watching_of_a_driver_that_hangs(hung: dict[str, str]) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-c", WATCH, "hfbench", "gpus", "--csv", "--watch"]
    with subprocess.Popen(command, env=hung, stdout=writing, stderr=subprocess.PIPE, text=True) as process:
        os.close(writing)
        assert process.stderr
        assert process.stderr.readline() == "sampling\n"
        os.close(reading)
        assert process.wait(60) == Exit.OK
        assert process.stderr.read() == "", "it did not wait for the driver, which is given ten seconds, to say so"


@pytest.fixture
def gpus(fake_nvml_folder: Path, tmp_path: Path) -> RunGpus:
    """Run `hfbench gpus --json` with these rules; its exit code is checked and its object returned."""

    def ran(rules: str = "", *words: str, count: int = 2, folder: Path = fake_nvml_folder) -> Any:
        script = tmp_path / "rules"
        script.write_text(rules)
        told = {
            **os.environ,
            "HFBENCH_HOME": str(tmp_path / "home"),
            "LD_LIBRARY_PATH": str(folder),
            "FAKE_NVML_COUNT": str(count),
            "FAKE_NVML_SCRIPT": str(script),
        }
        command = [sys.executable, "-m", "hfbench", "gpus", "--json", *words]
        done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=120)
        assert done.returncode == Exit.OK, done.stderr
        assert done.stderr == ""
        return json.loads(done.stdout)

    return ran


def unknown(value: Any) -> list[str]:
    """All reasons inside a value."""
    if isinstance(value, dict):
        if value.keys() == {"reason"}:
            return [value["reason"]]
        return [reason for key, each in value.items() if key not in ("reason", "stale") for reason in unknown(each)]
    return [reason for each in value for reason in unknown(each)] if isinstance(value, list) else []


def test_a_healthy_machine_has_every_value(gpus: RunGpus) -> None:
    snapshot = gpus()
    assert (snapshot["driver"], snapshot["cuda"], snapshot["reason"]) == ("580.01.23", "13.1", "")
    assert not snapshot["demo"]
    first, second = snapshot["devices"]
    assert first["uuid"] != second["uuid"]
    assert unknown(first) == ["not supported by this GPU"]  # NVLink recoveries, which the library does not know
    assert first["clock_sm"] < first["clock_sm_max"] == 1980
    assert (first["power"], first["power_limit"], first["energy"]) == (312.5, 600, 7200)
    assert first["temperature_limits"] == {"slowdown": 87, "shutdown": 92, "memory": 95}
    assert first["temperature_memory"] == 70
    assert first["clock_reasons"] == ["application clocks", "power cap", "thermal (hardware)"]
    assert first["throttle"] == ["power cap", "thermal (hardware)"]
    pcie = {"generation": 4, "generation_max": 5, "width": 8, "width_max": 16, "replays": 3}
    assert first["pcie"] == {**pcie, "rx": 2_000_000, "tx": 1_000_000}
    assert first["nvlink"]["active"] == [True, True, False, True]
    assert (first["nvlink"]["crc_errors"], first["nvlink"]["replay_errors"]) == (11, 7)
    assert (first["nvlink"]["rx_bytes"], first["nvlink"]["tx_bytes"]) == (2048 * 1024, 1024 * 1024)
    volatile = {"enabled": True, "volatile_corrected": 1, "volatile_uncorrected": 2}
    assert first["ecc"] == {**volatile, "aggregate_corrected": 11, "aggregate_uncorrected": 12}
    assert (first["rows"]["retired_single_bit"], first["rows"]["retired_double_bit"]) == (2, 0)
    assert (first["rows"]["remapped_corrected"], first["rows"]["remapping_pending"]) == (4, True)
    assert (first["persistence"], first["compute_mode"], first["compute_capability"]) == (
        True,
        "exclusive process",
        "9.0",
    )
    assert first["bus"] == "00000000:10:00.0"
    assert (first["processes"], first["xids"], first["mig"]["enabled"]) == ([], [], False)


def test_a_lost_gpu_costs_its_row_and_no_other(gpus: RunGpus) -> None:
    whole, lost = gpus("* 1 15")["devices"]
    assert whole["reason"] == ""
    assert lost["reason"] == LOST
    assert set(unknown(lost)) == {LOST}
    assert len(unknown(lost)) > 30


def test_no_permission_costs_the_value(gpus: RunGpus) -> None:
    rules = "nvmlDeviceGetPowerUsage 0 4\nnvmlDeviceGetComputeRunningProcesses_v3 0 4"
    first, second = gpus(rules)["devices"]
    assert first["power"] == first["processes"] == {"reason": "no permission"}
    assert first["temperature"] == 61
    assert second["power"] == 312.5


def test_what_a_gpu_does_not_support_is_not_zero(gpus: RunGpus) -> None:
    first, _ = gpus("* 0 3\nnvmlDeviceGetHandleByIndex_v2 0 0\nnvmlDeviceGetUUID 0 0\nnvmlDeviceGetName 0 0")["devices"]
    assert first["reason"] == ""
    assert first["name"] == "Fake Card 96GB"
    assert first["memory"]["used"] == first["ecc"]["enabled"] == {"reason": "not supported by this GPU"}
    assert first["nvlink"] == {"reason": "this GPU has no NVLink"}


@pytest.mark.parametrize(
    ("missing", "name", "expected"),
    [
        ("nvmlDeviceGetMemoryInfo_v2", "memory", {"used": 7 * GIB, "free": 89 * GIB, "total": 96 * GIB}),
        ("nvmlDeviceGetCurrentClocksEventReasons", "throttle", ["hardware slowdown"]),
        ("nvmlDeviceGetComputeRunningProcesses_v3", "processes", []),
        ("nvmlDeviceGetTemperature", "temperature", 61),
        ("nvmlDeviceGetTotalEnergyConsumption", "energy", {"reason": "this driver lacks the function"}),
        ("nvmlDeviceGetRemappedRows", "rows", {"remapped_corrected": {"reason": "this driver lacks the function"}}),
    ],
)
def test_an_old_driver_answers_by_older_functions_or_costs_the_value(
    gpus: RunGpus, missing: str, name: str, expected: Any
) -> None:
    [found] = gpus(f"{missing} * 13", count=1)["devices"]
    if isinstance(expected, dict) and len(found[name]) > 1:
        assert found[name].items() >= expected.items()
    else:
        assert found[name] == expected


def test_a_driver_that_lacks_functions_altogether_answers_by_the_older_ones(
    gpus: RunGpus, old_nvml_folder: Path
) -> None:
    [card] = gpus("process 0 1 C 100", count=1, folder=old_nvml_folder)["devices"]
    assert (card["memory"]["used"], card["throttle"]) == (7 * GIB, ["hardware slowdown"])
    assert card["memory"]["reserved"] == {"reason": "this driver counts it as used"}
    assert [each["pid"] for each in card["processes"]] == [1]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (18, "driver and library versions differ; reload the driver or reboot"),
        (9, "the NVIDIA driver is not loaded"),
        (4, "no permission"),
        (999, "unknown error in the driver"),
    ],
)
def test_a_driver_that_does_not_start_is_one_reason(gpus: RunGpus, code: int, reason: str) -> None:
    snapshot = gpus(f"nvmlInitWithFlags - {code}")
    assert (snapshot["reason"], snapshot["devices"]) == (reason, [])
    assert snapshot["driver"] == snapshot["cuda"] == {"reason": reason}


def test_no_driver_and_no_gpu_are_told_apart(gpus: RunGpus, broken_nvml_folder: Path) -> None:
    assert "libnvidia-ml.so.1" in gpus(folder=broken_nvml_folder)["reason"]
    assert gpus(count=0)["reason"] == "the driver shows no GPU to this process"


def test_a_slow_call_is_waited_for(gpus: RunGpus) -> None:
    snapshot = gpus("nvmlDeviceGetTemperature 0 0 50000")
    assert [device["temperature"] for device in snapshot["devices"]] == [61, 61]
    assert snapshot["devices"][0]["waiting"] == ""


def test_a_call_that_never_returns_costs_its_value_and_the_command_ends(gpus: RunGpus) -> None:
    first, second = gpus("nvmlDeviceGetPowerUsage 0 0 -1")["devices"]
    assert first["power"]["reason"].startswith("no answer to power for ")
    assert first["waiting"] == first["power"]["reason"]
    assert (first["temperature"], first["clock_sm"], first["pcie"]["rx"]) == (61, 1755, 2_000_000)
    assert second["power"] == 312.5


def test_a_card_that_never_returns_costs_its_row(gpus: RunGpus) -> None:
    first, second = gpus("nvmlDeviceGetHandleByIndex_v2 0 0 -1\nnvmlDeviceGetUUID 0 0 -1\n* 0 0 -1")["devices"]
    assert first["reason"].startswith("no answer to handle")
    assert second["reason"] == second["waiting"] == ""
    assert len(unknown(second)) == 1


def test_cards_in_another_order_keep_their_own_names(gpus: RunGpus) -> None:
    straight, turned = gpus()["devices"], gpus("order 1 0")["devices"]
    assert [each["uuid"] for each in turned] == [each["uuid"] for each in reversed(straight)]
    assert [each["bus"] for each in turned] == [each["bus"] for each in reversed(straight)]


def test_a_divided_card_lists_its_slices(gpus: RunGpus) -> None:
    [card] = gpus("mig 0 2", count=1)["devices"]
    assert (card["mig"]["enabled"], card["mig"]["pending"]) == (True, True)
    first, second = card["mig"]["instances"]
    assert first["uuid"].startswith("MIG-")
    assert first["uuid"] != second["uuid"]
    assert (second["index"], second["gpu_instance"], second["memory_total"]) == (1, 8, 12 * GIB)


def test_an_event_of_the_driver_is_told_once_with_its_meaning(gpus: RunGpus) -> None:
    first, second = gpus("xid 1 79\nxid 1 31")["devices"]
    assert first["xids"] == []
    assert [(each["code"], each["meaning"]) for each in second["xids"]] == [
        (79, "the GPU fell off the bus"),
        (31, "a kernel accessed memory that is not its own"),
    ]
    assert abs(second["xids"][0]["at"] - time.time()) < 3600


def test_events_that_cannot_be_had_are_a_reason(gpus: RunGpus) -> None:
    assert gpus("nvmlEventSetCreate - 3")["devices"][0]["xids"] == {"reason": "not supported by this GPU"}
    first, second = gpus("nvmlDeviceRegisterEvents 0 4")["devices"]
    assert first["xids"] == {"reason": "no permission"}
    assert second["xids"] == []


def test_processes_have_a_user_and_a_command(gpus: RunGpus) -> None:
    own = os.getpid()
    rules = f"process 0 {own} C 4096\nprocess 0 {own} G 4096\nprocess 0 4999999 C -1\nprocess 0 1 G 8192"
    processes = gpus(rules, count=1)["devices"][0]["processes"]
    assert [each["pid"] for each in processes] == [1, own, 4999999]
    mine, foreign = processes[1], processes[2]
    assert (mine["kinds"], mine["memory"], mine["job"]) == (["compute", "graphics"], 4 * GIB, "")
    assert "python" in mine["command"].lower() or "pytest" in mine["command"].lower()
    assert isinstance(mine["user"], str)
    assert foreign["memory"] == {"reason": "the driver does not tell it here"}
    assert foreign["command"] == {"reason": "the process is not visible from here"}
