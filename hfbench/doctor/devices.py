"""What checks of cards share: how they are named, and what is said where there is none."""

from __future__ import annotations

from hfbench.doctor.check import Outcome, ok, saw, some
from hfbench.doctor.result import Evidence
from hfbench.doctor.system import System
from hfbench.gpu.telemetry import DeviceReading
from hfbench.models.problem import counted

LIMIT = 15.0
"""Seconds: without persistence mode the first look wakes up every card."""
NONE = "there is no card"


def fine(system: System, found: str) -> Outcome:
    """Nothing is wrong with any card, or there is none."""
    devices = system.gpus.devices
    if not devices:
        return ok(NONE, saw(system.gpus.reason, "NVML"))
    return ok(found, saw(counted(len(devices), "card"), "NVML"))


def once(*devices: DeviceReading) -> list[DeviceReading]:
    """These cards, none twice."""
    return list({each.index: each for each in devices}.values())


def named(devices: list[DeviceReading]) -> str:
    """`card 0, 3`."""
    return f"card {some(each.index for each in devices)}"


def seen_on(device: DeviceReading, read: str) -> Evidence:
    """What NVML told of a card."""
    return saw(read, f"NVML, card {device.index}")
