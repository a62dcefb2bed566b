"""What the GPUs of this machine do right now, as frozen snapshots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hfbench.gpu.nvml import Nvml, open_nvml
from hfbench.gpu.reading import Unavailable, Value

TEMPERATURE_OF_GPU = 0
"""NVML_TEMPERATURE_GPU, the only sensor every card has."""
CLOCK_SM, CLOCK_MEMORY = 1, 2
"""NVML_CLOCK_SM and NVML_CLOCK_MEM."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Device memory in bytes. `used` is held by processes; `reserved` belongs to driver and firmware."""

    used: Value
    reserved: Value
    free: Value
    total: Value


@dataclass(frozen=True, kw_only=True)
class Utilization:
    """Percent of the last sampling period in which a kernel ran, and in which memory was read or written."""

    gpu: Value
    memory: Value


@dataclass(frozen=True, kw_only=True)
class DeviceReading:
    """One GPU. Temperature in degrees Celsius, power in watts, clocks in MHz. `reason` is set when it is lost."""

    index: int
    uuid: str | Unavailable
    name: str | Unavailable
    memory: Memory
    utilization: Utilization
    temperature: Value
    power: Value
    power_limit: Value
    clock_sm: Value
    clock_memory: Value
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class GpuSnapshot:
    """All GPUs at one moment. `reason` says in one clause why there are none."""

    driver: str | Unavailable
    cuda: str | Unavailable
    reason: str
    devices: tuple[DeviceReading, ...]


class Sampler:
    """Reads GPUs on demand and holds its NVML session between samples; it starts no thread."""

    def __init__(self) -> None:
        self._nvml: Nvml | Unavailable | None = None

    def sample(self) -> GpuSnapshot:
        """The GPUs now. Never raises: what cannot be read is a reason in its place."""
        if not isinstance(self._nvml, Nvml):
            self._nvml = open_nvml()  # tried again each time: a driver may be loaded while the workbench runs
        if isinstance(self._nvml, Unavailable):
            return _nothing(self._nvml.reason)
        count = self._nvml.count()
        if isinstance(count, Unavailable):
            self.close()
            return _nothing(count.reason)
        return GpuSnapshot(
            driver=self._nvml.text("nvmlSystemGetDriverVersion"),
            cuda=_cuda_version(self._nvml.read("nvmlSystemGetCudaDriverVersion_v2")),
            reason="" if count else "the driver shows no GPU to this process",
            devices=tuple(_device(self._nvml, index) for index in range(count)),
        )

    def close(self) -> None:
        """Give the NVML session back; the next sample opens a new one."""
        if isinstance(self._nvml, Nvml):
            self._nvml.close()
        self._nvml = None


def _nothing(reason: str) -> GpuSnapshot:
    unknown = Unavailable(reason)
    return GpuSnapshot(driver=unknown, cuda=unknown, reason=reason, devices=())


def _device(nvml: Nvml, index: int) -> DeviceReading:
    handle = nvml.read("nvmlDeviceGetHandleByIndex", index)
    if isinstance(handle, Unavailable):
        return _lost(index, handle)

    def number(function: str, *arguments: Any, scale: float = 1) -> Value:
        return _value(nvml.read(function, handle, *arguments), lambda answer: answer * scale)

    reading = DeviceReading(
        index=index,
        uuid=nvml.text("nvmlDeviceGetUUID", handle),
        name=nvml.text("nvmlDeviceGetName", handle),
        memory=_memory(nvml, handle),
        utilization=_utilization(nvml, handle),
        temperature=number("nvmlDeviceGetTemperature", TEMPERATURE_OF_GPU),
        power=number("nvmlDeviceGetPowerUsage", scale=1e-3),
        power_limit=number("nvmlDeviceGetEnforcedPowerLimit", scale=1e-3),
        clock_sm=number("nvmlDeviceGetClockInfo", CLOCK_SM),
        clock_memory=number("nvmlDeviceGetClockInfo", CLOCK_MEMORY),
    )
    name = reading.name
    gone = isinstance(name, Unavailable) and reading.memory.total == name and reading.temperature == name
    return _lost(index, name) if gone and isinstance(name, Unavailable) else reading


def _lost(index: int, unknown: Unavailable) -> DeviceReading:
    """A row in which one reason stands for every value."""
    return DeviceReading(
        index=index,
        uuid=unknown,
        name=unknown,
        memory=Memory(used=unknown, reserved=unknown, free=unknown, total=unknown),
        utilization=Utilization(gpu=unknown, memory=unknown),
        temperature=unknown,
        power=unknown,
        power_limit=unknown,
        clock_sm=unknown,
        clock_memory=unknown,
        reason=unknown.reason,
    )


def _memory(nvml: Nvml, handle: Any) -> Memory:
    """By version 2 where the driver has it: version 1 counts what the driver reserves as used."""
    version = getattr(nvml.binding, "nvmlMemory_v2", None)
    answer = nvml.read("nvmlDeviceGetMemoryInfo", handle, version=version) if version else Unavailable("")
    reserved = _value(answer, lambda info: info.reserved)
    if isinstance(answer, Unavailable):
        first = nvml.read("nvmlDeviceGetMemoryInfo", handle)
        reserved = first if isinstance(first, Unavailable) else Unavailable("this driver counts it as used")
        answer = first
    return Memory(
        used=_value(answer, lambda info: info.used),
        reserved=reserved,
        free=_value(answer, lambda info: info.free),
        total=_value(answer, lambda info: info.total),
    )


def _utilization(nvml: Nvml, handle: Any) -> Utilization:
    rates = nvml.read("nvmlDeviceGetUtilizationRates", handle)
    return Utilization(gpu=_value(rates, lambda each: each.gpu), memory=_value(rates, lambda each: each.memory))


def _value(answer: Any, pick: Callable[[Any], float]) -> Value:
    return answer if isinstance(answer, Unavailable) else pick(answer)


def _cuda_version(answer: int | Unavailable) -> str | Unavailable:
    """`13000` -> `13.0`: NVML packs 1000 * major + 10 * minor."""
    return answer if isinstance(answer, Unavailable) else f"{answer // 1000}.{answer % 1000 // 10}"
