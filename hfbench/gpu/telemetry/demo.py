"""Made-up cards for screenshots and for people without a GPU: a binding like pynvml's that asks no driver.

Every value is a function of the clock, so that pictures taken at the same second are the same.
"""

# ruff: noqa: N802, N815 - the names are those of the library that is stood in for

from __future__ import annotations

import math
import os
import time
from types import SimpleNamespace
from typing import Any

from hfbench.gpu.nvml import Nvml
from hfbench.units import GIB

DEMO_GPUS = "HFBENCH_DEMO_GPUS"
"""Environment variable: so many made-up cards take the place of the driver's."""
MOST = 64
NAME = "demo card 80GB"
DRIVER = "demo"
TOTAL = 80 * GIB
RESERVED = GIB // 2
POWER_LIMIT = 700.0
POWER_CAP, IDLE, THERMAL = 0x4, 0x1, 0x20
TIMEOUT, NOT_SUPPORTED = 10, 3
FIRST_PID = 5_000_001
"""Above the largest pid a kernel gives: no process of this machine is meant."""
PERIOD = 60.0
"""Seconds after which a card does the same again."""


def demo_cards() -> int:
    """How many made-up cards the environment asks for; 0 for a word that is no number."""
    told = os.environ.get(DEMO_GPUS, "").strip()
    return min(int(told), MOST) if told.isascii() and told.isdecimal() and len(told) < 6 else 0


def open_demo(count: int) -> Nvml:
    """A session in which `count` cards are made up."""
    return Nvml(DemoBinding(min(count, MOST)))


class DemoError(Exception):
    """As pynvml's NVMLError: `value` is the return code."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class DemoBinding:
    """The functions of pynvml that hfbench calls; a handle is the number of the card."""

    NVMLError = DemoError
    nvmlMemory_v2 = 2

    def __init__(self, count: int) -> None:
        self._count = count

    def process_facts(self, pid: int) -> tuple[str, str]:
        """User and command of a made-up process."""
        return "demo", f"demo: python train.py --rank {pid - FIRST_PID}"

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...

    def nvmlSystemGetDriverVersion(self) -> str:
        return DRIVER

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return self._count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetIndex(self, card: int) -> int:
        return card

    def nvmlDeviceGetUUID(self, card: int) -> str:
        return f"GPU-demo-{card:04d}"

    def nvmlDeviceGetName(self, card: int) -> str:
        return NAME

    def nvmlDeviceGetPciInfo(self, card: int) -> Any:
        return SimpleNamespace(busId=f"00000000:{0x10 + card:02X}:00.0")

    def nvmlDeviceGetCudaComputeCapability(self, card: int) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetMemoryInfo(self, card: int, version: int | None = None) -> Any:
        used = _used(card)
        return SimpleNamespace(total=TOTAL, reserved=RESERVED, used=used, free=TOTAL - RESERVED - used)

    def nvmlDeviceGetUtilizationRates(self, card: int) -> Any:
        load = _load(card)
        return SimpleNamespace(gpu=round(100 * load), memory=round(60 * load))

    def nvmlDeviceGetTemperature(self, card: int, sensor: int) -> int:
        return round(34 + 40 * _load(card))

    def nvmlDeviceGetTemperatureThreshold(self, card: int, kind: int) -> int:
        return {0: 92, 1: 87, 2: 95}[kind]

    def nvmlDeviceGetPowerUsage(self, card: int) -> int:
        return round(1000 * (75 + (POWER_LIMIT - 75) * _load(card)))

    def nvmlDeviceGetEnforcedPowerLimit(self, card: int) -> int:
        return round(1000 * POWER_LIMIT)

    def nvmlDeviceGetTotalEnergyConsumption(self, card: int) -> int:
        return int(time.time() % 1e6) * 400_000

    def nvmlDeviceGetClockInfo(self, card: int, kind: int) -> int:
        return 2619 if kind == 2 else 345 if _load(card) == 0 else 1980 - round(300 * (_load(card) > 0.9))

    def nvmlDeviceGetMaxClockInfo(self, card: int, kind: int) -> int:
        return 2619 if kind == 2 else 1980

    def nvmlDeviceGetCurrentClocksEventReasons(self, card: int) -> int:
        load = _load(card)
        return IDLE if load == 0 else POWER_CAP | (THERMAL if card == 2 else 0) if load > 0.9 else 0

    def nvmlDeviceGetCurrPcieLinkGeneration(self, card: int) -> int:
        return 5

    nvmlDeviceGetMaxPcieLinkGeneration = nvmlDeviceGetCurrPcieLinkGeneration

    def nvmlDeviceGetCurrPcieLinkWidth(self, card: int) -> int:
        return 8 if card == 5 else 16  # a card that sits badly in its slot

    def nvmlDeviceGetMaxPcieLinkWidth(self, card: int) -> int:
        return 16

    def nvmlDeviceGetPcieThroughput(self, card: int, counter: int) -> int:
        return round(2_000_000 * _load(card) / (1 + counter))

    def nvmlDeviceGetPcieReplayCounter(self, card: int) -> int:
        return 0

    def nvmlDeviceGetFieldValues(self, card: int, wanted: list[Any]) -> list[Any]:
        known = {82: round(40 + 40 * _load(card)), 91: 4, 38: 0, 45: 0, 52: 0, 59: 0, 138: 2**30, 139: 2**30}
        return [
            SimpleNamespace(nvmlReturn=0, valueType=3, value=SimpleNamespace(ullVal=known[_field(each)]))
            for each in wanted
        ]

    def nvmlDeviceGetNvLinkState(self, card: int, link: int) -> int:
        return 1

    def nvmlDeviceGetEccMode(self, card: int) -> list[int]:
        return [1, 1]

    def nvmlDeviceGetTotalEccErrors(self, card: int, kind: int, span: int) -> int:
        return 3 if (card, kind) == (3, 0) else 0

    def nvmlDeviceGetRetiredPages(self, card: int, cause: int) -> list[int]:
        raise DemoError(NOT_SUPPORTED)

    def nvmlDeviceGetRetiredPagesPendingStatus(self, card: int) -> int:
        raise DemoError(NOT_SUPPORTED)

    def nvmlDeviceGetRemappedRows(self, card: int) -> tuple[int, int, int, int]:
        return (1, 0, 0, 0) if card == 3 else (0, 0, 0, 0)

    def nvmlDeviceGetMigMode(self, card: int) -> list[int]:
        return [0, 0]

    def nvmlDeviceGetPersistenceMode(self, card: int) -> int:
        return 1

    def nvmlDeviceGetComputeMode(self, card: int) -> int:
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, card: int) -> list[Any]:
        return [SimpleNamespace(pid=FIRST_PID + card, usedGpuMemory=_used(card) - GIB)] if _used(card) > GIB else []

    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, card: int) -> list[Any]:
        return []

    def nvmlEventSetCreate(self) -> int:
        return 0

    def nvmlDeviceGetSupportedEventTypes(self, card: int) -> int:
        return 0x8

    def nvmlDeviceRegisterEvents(self, card: int, kinds: int, events: int) -> None: ...

    def nvmlEventSetWait_v2(self, events: int, milliseconds: int) -> Any:
        raise DemoError(TIMEOUT)


def _load(card: int) -> float:
    """Share of full load: a wave a minute long, another phase on each card; every fourth card is idle."""
    if card % 4 == 3:
        return 0.0
    return round(0.5 + 0.5 * math.sin(2 * math.pi * (time.time() % PERIOD) / PERIOD + card), 3)


def _used(card: int) -> int:
    return 0 if card % 4 == 3 else int(TOTAL * (0.55 + 0.3 * _load(card)))


def _field(wanted: Any) -> int:
    return int(wanted[0] if isinstance(wanted, tuple) else wanted)
