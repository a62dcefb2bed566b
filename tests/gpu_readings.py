"""Readings of cards for tests, as a driver would give them that answers everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hfbench.gpu.telemetry import DeviceReading, GpuSnapshot, Memory, Utilization
from hfbench.units import GIB


def card(index: int, **changes: Any) -> DeviceReading:
    """A busy H200."""
    reading = DeviceReading(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA H200",
        memory=Memory(used=61 * GIB, reserved=GIB, free=79 * GIB, total=141 * GIB),
        utilization=Utilization(gpu=97, memory=50),
        temperature=64,
        power=512,
        power_limit=700,
        clock_sm=1980,
        clock_memory=2619,
    )
    return replace(reading, **changes)


def snapshot(*cards: DeviceReading, reason: str = "") -> GpuSnapshot:
    """A sample of these cards."""
    return GpuSnapshot(driver="580.65", cuda="13.0", reason=reason, devices=cards)
