"""nvitop and gpustat read the same library: what they show as well is the same here, healthy and with faults."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import pytest

HEALTHY = ""
NO_POWER = "nvmlDeviceGetPowerUsage 0 4\nnvmlDeviceGetUtilizationRates 1 3"
DIVIDED = "mig 1 2"
FAULTS = pytest.mark.parametrize(
    ("rules", "driver"),
    [(HEALTHY, "fake"), (NO_POWER, "fake"), (HEALTHY, "old"), (DIVIDED, "fake")],
    ids=["healthy", "no power", "old driver", "divided"],
)
OURS = """
import json
from hfbench.codec import encode
from hfbench.gpu.telemetry import Sampler
print(json.dumps(encode(Sampler().sample())))
"""
NVITOP = """
import json
from nvitop import Device
def plain(value):
    return None if str(value) == "N/A" else value
names = (
    "name uuid bus_id memory_total memory_used memory_free gpu_utilization memory_utilization temperature power_usage "
    "power_limit sm_clock memory_clock max_sm_clock max_memory_clock persistence_mode compute_mode mig_mode "
    "pcie_tx_throughput pcie_rx_throughput nvlink_link_count total_volatile_uncorrected_ecc_errors"
).split()
cards = []
for device in Device.all():
    card = {name: plain(getattr(device, name)()) for name in names}
    card["processes"] = [[pid, plain(each.gpu_memory())] for pid, each in device.processes().items()]
    card["capability"] = list(device.cuda_compute_capability())
    cards.append(card)
print(json.dumps([Device.driver_version(), Device.cuda_driver_version(), cards]))
"""
NVITOP_LOST = """
import json
from nvitop import Device
cards = [{"lost": str(device.memory_total()) == str(device.temperature()) == "N/A"} for device in Device.all()]
print(json.dumps(["", "", cards]))
"""
GPUSTAT = """
import json
import gpustat
gpus = gpustat.new_query()
print(json.dumps([gpus.driver_version, [dict(gpu.entry) for gpu in gpus]], default=str))
"""
WithNvml = Callable[..., Any]
Both = Callable[..., tuple[Any, Any]]


def known(value: Any, scale: float = 1) -> Any:
    """Ours in the peer's unit, or None as the peer says what it does not know."""
    if isinstance(value, dict) and value.keys() == {"reason"}:
        return None
    return value if isinstance(value, (str, bool)) else value * scale


@pytest.fixture
def both(with_nvml: WithNvml, request: pytest.FixtureRequest) -> Callable[..., tuple[Any, Any]]:
    """What we and a peer say of the same library, while this process holds memory of the first card."""

    def read(peer: str, rules: str, driver: str = "fake") -> tuple[Any, Any]:
        told = {"rules": f"{rules}\nprocess 0 {os.getpid()} C 4096\n"}
        told["folder"] = request.getfixturevalue(f"{driver}_nvml_folder")
        return with_nvml(OURS, **told), with_nvml(peer, **told)

    return read


@FAULTS
@pytest.mark.skipif(importlib.util.find_spec("nvitop") is None, reason="nvitop is not installed")
def test_nvitop_agrees(both: Both, rules: str, driver: str) -> None:
    ours, (version, cuda, theirs) = both(NVITOP, rules, driver)
    assert (ours["driver"], ours["cuda"]) == (version, cuda)
    assert len(ours["devices"]) == len(theirs) == 2
    for mine, other in zip(ours["devices"], theirs, strict=True):
        assert {
            "name": mine["name"],
            "uuid": mine["uuid"],
            "bus_id": mine["bus"],
            "memory_total": known(mine["memory"]["total"]),
            "memory_used": known(mine["memory"]["used"]),
            "memory_free": known(mine["memory"]["free"]),
            "gpu_utilization": known(mine["utilization"]["gpu"]),
            "memory_utilization": known(mine["utilization"]["memory"]),
            "temperature": known(mine["temperature"]),
            "power_usage": known(mine["power"], 1000),
            "power_limit": known(mine["power_limit"], 1000),
            "sm_clock": known(mine["clock_sm"]),
            "memory_clock": known(mine["clock_memory"]),
            "max_sm_clock": known(mine["clock_sm_max"]),
            "max_memory_clock": known(mine["clock_memory_max"]),
            "persistence_mode": "Enabled" if mine["persistence"] else "Disabled",
            "compute_mode": mine["compute_mode"].title(),
            "mig_mode": "Enabled" if mine["mig"]["enabled"] else "Disabled",
            "pcie_tx_throughput": known(mine["pcie"]["tx"], 1e-3),  # the driver's KB/s, as both have it
            "pcie_rx_throughput": known(mine["pcie"]["rx"], 1e-3),
            "nvlink_link_count": len(mine["nvlink"]["active"]),
            "total_volatile_uncorrected_ecc_errors": known(mine["ecc"]["volatile_uncorrected"]),
            "processes": [[each["pid"], each["memory"]] for each in mine["processes"]],
            "capability": [int(part) for part in mine["compute_capability"].split(".")],
        } == other


@FAULTS
@pytest.mark.skipif(importlib.util.find_spec("gpustat") is None, reason="gpustat is not installed")
def test_gpustat_agrees(both: Both, rules: str, driver: str) -> None:
    ours, (version, theirs) = both(GPUSTAT, rules, driver)
    assert ours["driver"] == version
    mib = 1 / 2**20
    for mine, other in zip(ours["devices"], theirs, strict=True):
        shared = {
            "index": mine["index"],
            "uuid": mine["uuid"],
            "name": mine["name"],
            "temperature.gpu": known(mine["temperature"]),
            "utilization.gpu": known(mine["utilization"]["gpu"]),
            "memory.used": known(mine["memory"]["used"], mib),
            "memory.total": known(mine["memory"]["total"], mib),
            "enforced.power.limit": known(mine["power_limit"]),
        }
        assert shared == {name: other[name] for name in shared}
        power = known(mine["power"])
        assert other["power.draw"] == (None if power is None else int(power))
        assert [(each["pid"], each["gpu_memory_usage"]) for each in other["processes"]] == [
            (each["pid"], each["memory"] * mib) for each in mine["processes"]
        ]
        assert [each["username"] for each in other["processes"]] == [each["user"] for each in mine["processes"]]


@pytest.mark.skipif(importlib.util.find_spec("nvitop") is None, reason="nvitop is not installed")
def test_nvitop_loses_the_same_card(both: Both) -> None:
    ours, (_, _, theirs) = both(NVITOP_LOST, "* 1 15")
    assert [bool(each["reason"]) for each in ours["devices"]] == [False, True]
    assert [each["lost"] for each in theirs] == [False, True]
