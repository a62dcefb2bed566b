"""What the GPUs of this machine do: read through NVML, with every value a value or the reason it is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hfbench.gpu.telemetry.readings import (
    DeviceReading,
    Ecc,
    GpuProcess,
    GpuSnapshot,
    Memory,
    Mig,
    MigInstance,
    NvLinks,
    Pcie,
    Rows,
    TemperatureLimits,
    Utilization,
    Xid,
)

if TYPE_CHECKING:
    from hfbench.gpu.telemetry.attach import WhileRunning
    from hfbench.gpu.telemetry.monitor import Monitor
    from hfbench.gpu.telemetry.sampler import Sampler
    from hfbench.gpu.telemetry.use import GpuUse

LATER = {"Monitor": "monitor", "Sampler": "sampler", "GpuUse": "use", "WhileRunning": "attach"}
"""What reads, by its module: who only names readings, as screens do, does not load it."""

__all__ = [
    "DeviceReading",
    "Ecc",
    "GpuProcess",
    "GpuSnapshot",
    "GpuUse",
    "Memory",
    "Mig",
    "MigInstance",
    "Monitor",
    "NvLinks",
    "Pcie",
    "Rows",
    "Sampler",
    "TemperatureLimits",
    "Utilization",
    "WhileRunning",
    "Xid",
]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{LATER[name]}"), name)
