"""Snapshots of GPUs, read through the real binding from a library that plays NVML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SAMPLE = """
import json
from hfbench.codec import encode
from hfbench.gpu.telemetry import Sampler
print(json.dumps(encode(Sampler().sample())))
"""
# One sampler, asked three times while the script of the library changes.
CHANGING = """
import json, os
from hfbench.codec import encode
from hfbench.gpu.telemetry import Sampler
sampler, seen = Sampler(), []
for rules in ("", "* 1 15", ""):
    open(os.environ["FAKE_NVML_SCRIPT"], "w").write(rules)
    seen.append(encode(sampler.sample()))
print(json.dumps(seen))
"""
LATER = CHANGING.replace('"* 1 15", ""', '"nvmlDeviceGetCount_v2 - 9", ""').replace(
    '("", ', '("nvmlInitWithFlags - 9", '
)
GIB = 2**30
WithNvml = Callable[..., Any]


def test_every_field_has_its_unit(with_nvml: WithNvml) -> None:
    snapshot = with_nvml(SAMPLE)
    assert (snapshot["driver"], snapshot["cuda"], snapshot["reason"]) == ("580.01.23", "13.1", "")
    first, second = snapshot["devices"]
    assert (first["index"], second["index"]) == (0, 1)
    assert first["uuid"] != second["uuid"]
    assert first["name"] == "Fake Card 96GB"
    assert first["memory"] == {"used": 6 * GIB, "reserved": GIB, "free": 89 * GIB, "total": 96 * GIB}
    assert first["utilization"] == {"gpu": 42, "memory": 17}
    assert (first["temperature"], first["power"], first["power_limit"]) == (61, 312.5, 600)
    assert (first["clock_sm"], first["clock_memory"]) == (1755, 2619)


def test_an_old_driver_counts_what_it_reserves_as_used_and_says_so(with_nvml: WithNvml) -> None:
    [device] = with_nvml(SAMPLE, rules="nvmlDeviceGetMemoryInfo_v2 * 13", count=1)["devices"]
    assert device["memory"]["used"] == 7 * GIB
    assert device["memory"]["reserved"] == {"reason": "this driver counts it as used"}


@pytest.mark.parametrize(
    ("function", "code", "path", "reason"),
    [
        ("nvmlDeviceGetPowerUsage", 4, ("power",), "no permission"),
        ("nvmlDeviceGetUtilizationRates", 3, ("utilization", "gpu"), "not supported by this GPU"),
        ("nvmlDeviceGetTemperature", 999, ("temperature",), "unknown error in the driver"),
        ("nvmlDeviceGetUUID", 77, ("uuid",), "NVML error 77"),
    ],
)
def test_a_value_that_cannot_be_read_is_a_reason_and_costs_only_itself(
    with_nvml: WithNvml, function: str, code: int, path: tuple[str, ...], reason: str
) -> None:
    broken, whole = with_nvml(SAMPLE, rules=f"{function} 0 {code}")["devices"]
    found, other = broken, whole
    for key in path:
        found, other = found[key], other[key]
    assert found == {"reason": reason}
    assert not isinstance(other, dict)
    assert broken["reason"] == ""


def test_memory_a_card_does_not_report_is_never_zero(with_nvml: WithNvml) -> None:
    rules = "nvmlDeviceGetMemoryInfo * 3\nnvmlDeviceGetMemoryInfo_v2 * 3"
    memory = with_nvml(SAMPLE, rules=rules, count=1)["devices"][0]["memory"]
    assert set(map(str, memory.values())) == {"{'reason': 'not supported by this GPU'}"}


def test_a_lost_gpu_costs_only_its_row_and_may_come_back(with_nvml: WithNvml) -> None:
    before, during, after = with_nvml(CHANGING)
    assert during["devices"][1]["reason"] == "the GPU is lost (fell off the bus)"
    assert during["devices"][0] == before["devices"][0]
    assert after["devices"] == before["devices"]


def test_a_driver_that_is_loaded_later_is_found_by_the_same_sampler(with_nvml: WithNvml) -> None:
    unloaded, failing, working = with_nvml(LATER)
    assert unloaded["reason"] == failing["reason"] == "the NVIDIA driver is not loaded"
    assert unloaded["devices"] == failing["devices"] == []
    assert len(working["devices"]) == 2


def test_mismatched_versions_name_the_remedy(with_nvml: WithNvml) -> None:
    snapshot = with_nvml(SAMPLE, rules="nvmlInitWithFlags - 18")
    assert snapshot["reason"] == "driver and library versions differ; reload the driver or reboot"
    assert snapshot["driver"] == {"reason": snapshot["reason"]}


def test_a_machine_without_a_driver_says_so(with_nvml: WithNvml, broken_nvml_folder: Path) -> None:
    snapshot = with_nvml(SAMPLE, folder=broken_nvml_folder)
    assert snapshot["reason"] == "the NVIDIA driver library (libnvidia-ml.so.1) is not installed"
    assert snapshot["devices"] == []


def test_a_driver_without_gpus_says_so(with_nvml: WithNvml) -> None:
    assert with_nvml(SAMPLE, count=0)["reason"] == "the driver shows no GPU to this process"
