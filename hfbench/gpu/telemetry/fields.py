"""What is read of a card: fast fields with every sample, slow ones every few seconds, static ones once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hfbench.gpu.nvml import LACKING, Nvml
from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.telemetry.decode import clock_words, compute_mode
from hfbench.gpu.telemetry.links import field_values, read_nvlink
from hfbench.gpu.telemetry.processes import read_processes
from hfbench.gpu.telemetry.readings import Ecc, Memory, Mig, MigInstance, Rows, Utilization

# Numbers of nvml.h.
TEMPERATURE_OF_GPU = 0
CLOCK_SM, CLOCK_MEMORY = 1, 2
SHUTDOWN, SLOWDOWN, MEMORY_MAX = 0, 1, 2
PCIE_TX, PCIE_RX = 0, 1
CORRECTED, UNCORRECTED, VOLATILE, AGGREGATE = 0, 1, 0, 1
SINGLE_BIT, DOUBLE_BIT = 0, 1
MEMORY_TEMPERATURE = 82

Read = Callable[[Nvml, Any], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One value or a few that come together. `name` is a field of DeviceReading, or a part of one behind a dot."""

    name: str
    read: Read


def _call(function: str, *arguments: Any, scale: float = 1) -> Read:
    """A number in units of `scale`."""
    return lambda nvml, handle: _value(nvml.read(function, handle, *arguments), lambda answer: answer * scale)


def _text(function: str) -> Read:
    return lambda nvml, handle: nvml.text(function, handle)


def _flag(function: str) -> Read:
    return lambda nvml, handle: _value(nvml.read(function, handle), bool)


def _value(answer: Any, pick: Callable[[Any], Any]) -> Any:
    return answer if isinstance(answer, Unavailable) else pick(answer)


def read_memory(nvml: Nvml, handle: Any) -> Memory:
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


def _clock_reasons(nvml: Nvml, handle: Any) -> tuple[str, ...] | Unavailable:
    """By the name of today, and by the one that drivers before 535 know."""
    answer = nvml.read("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if isinstance(answer, Unavailable) and answer.reason in LACKING:
        answer = nvml.read("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    words: tuple[str, ...] | Unavailable = _value(answer, clock_words)
    return words


def _temperature(nvml: Nvml, handle: Any) -> Value:
    """By the function of old, which drivers of CUDA 14 are to lose, and by its successor."""
    answer: Value = nvml.read("nvmlDeviceGetTemperature", handle, TEMPERATURE_OF_GPU)
    if isinstance(answer, Unavailable) and answer.reason in LACKING:
        newer: Value = nvml.read("nvmlDeviceGetTemperatureV", handle, TEMPERATURE_OF_GPU)
        return newer
    return answer


def _memory_temperature(nvml: Nvml, handle: Any) -> Value:
    [value] = field_values(nvml, handle, [MEMORY_TEMPERATURE])
    return Unavailable("not supported by this GPU") if value == 0 else value  # no memory works at 0 degrees


def _ecc(nvml: Nvml, handle: Any) -> Ecc:
    def errors(kind: int, span: int) -> Value:
        answer: Value = nvml.read("nvmlDeviceGetTotalEccErrors", handle, kind, span)
        return answer

    mode = nvml.read("nvmlDeviceGetEccMode", handle)
    return Ecc(
        enabled=_value(mode, lambda both: bool(both[0])),
        volatile_corrected=errors(CORRECTED, VOLATILE),
        volatile_uncorrected=errors(UNCORRECTED, VOLATILE),
        aggregate_corrected=errors(CORRECTED, AGGREGATE),
        aggregate_uncorrected=errors(UNCORRECTED, AGGREGATE),
    )


def _rows(nvml: Nvml, handle: Any) -> Rows:
    def retired(cause: int) -> Value:
        pages: Value = _value(nvml.read("nvmlDeviceGetRetiredPages", handle, cause), len)
        return pages

    remapped = nvml.read("nvmlDeviceGetRemappedRows", handle)
    return Rows(
        retired_single_bit=retired(SINGLE_BIT),
        retired_double_bit=retired(DOUBLE_BIT),
        retirement_pending=_value(nvml.read("nvmlDeviceGetRetiredPagesPendingStatus", handle), bool),
        remapped_corrected=_value(remapped, lambda four: four[0]),
        remapped_uncorrected=_value(remapped, lambda four: four[1]),
        remapping_pending=_value(remapped, lambda four: bool(four[2])),
        remapping_failed=_value(remapped, lambda four: bool(four[3])),
    )


def _mig(nvml: Nvml, handle: Any) -> Mig:
    mode = nvml.read("nvmlDeviceGetMigMode", handle)
    enabled = _value(mode, lambda both: bool(both[0]))
    instances: tuple[MigInstance, ...] | Unavailable = ()
    if isinstance(enabled, Unavailable):
        instances = enabled
    elif enabled:
        most = nvml.read("nvmlDeviceGetMaxMigDeviceCount", handle)
        instances = most if isinstance(most, Unavailable) else _instances(nvml, handle, most)
    return Mig(enabled=enabled, pending=_value(mode, lambda both: bool(both[1])), instances=instances)


def _instances(nvml: Nvml, handle: Any, most: int) -> tuple[MigInstance, ...]:
    """The slices that exist: places without one answer `not found`."""
    found = []
    for index in range(most):
        slice_ = nvml.read("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        if isinstance(slice_, Unavailable):
            continue
        memory = read_memory(nvml, slice_)
        found.append(
            MigInstance(
                index=index,
                uuid=nvml.text("nvmlDeviceGetUUID", slice_),
                gpu_instance=nvml.read("nvmlDeviceGetGpuInstanceId", slice_),
                compute_instance=nvml.read("nvmlDeviceGetComputeInstanceId", slice_),
                memory_used=memory.used,
                memory_total=memory.total,
            )
        )
    return tuple(found)


def _compute_mode(nvml: Nvml, handle: Any) -> str | Unavailable:
    word: str | Unavailable = _value(nvml.read("nvmlDeviceGetComputeMode", handle), compute_mode)
    return word


def _capability(nvml: Nvml, handle: Any) -> str | Unavailable:
    pair = nvml.read("nvmlDeviceGetCudaComputeCapability", handle)
    word: str | Unavailable = _value(pair, lambda both: f"{both[0]}.{both[1]}")
    return word


def _bus(nvml: Nvml, handle: Any) -> str | Unavailable:
    def spelled(info: Any) -> str:
        name = info.busId
        return name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)

    word: str | Unavailable = _value(nvml.read("nvmlDeviceGetPciInfo", handle), spelled)
    return word


FAST = (
    Field("uuid", _text("nvmlDeviceGetUUID")),
    Field("memory", read_memory),
    Field("utilization", _utilization),
    Field("temperature", _temperature),
    Field("power", _call("nvmlDeviceGetPowerUsage", scale=1e-3)),
    Field("clock_sm", _call("nvmlDeviceGetClockInfo", CLOCK_SM)),
    Field("clock_memory", _call("nvmlDeviceGetClockInfo", CLOCK_MEMORY)),
    Field("clock_reasons", _clock_reasons),
    Field("energy", _call("nvmlDeviceGetTotalEnergyConsumption", scale=1e-3)),
)
"""Asked with every sample. The UUID is among them: it tells whether this is still the card it was."""

STATIC = (
    Field("name", _text("nvmlDeviceGetName")),
    Field("bus", _bus),
    Field("compute_capability", _capability),
    Field("clock_sm_max", _call("nvmlDeviceGetMaxClockInfo", CLOCK_SM)),
    Field("clock_memory_max", _call("nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY)),
    Field("temperature_limits.slowdown", _call("nvmlDeviceGetTemperatureThreshold", SLOWDOWN)),
    Field("temperature_limits.shutdown", _call("nvmlDeviceGetTemperatureThreshold", SHUTDOWN)),
    Field("temperature_limits.memory", _call("nvmlDeviceGetTemperatureThreshold", MEMORY_MAX)),
    Field("pcie.generation_max", _call("nvmlDeviceGetMaxPcieLinkGeneration")),
    Field("pcie.width_max", _call("nvmlDeviceGetMaxPcieLinkWidth")),
)
"""Asked until they are known, or known never to be."""

SLOW = (
    Field("power_limit", _call("nvmlDeviceGetEnforcedPowerLimit", scale=1e-3)),
    Field("processes", read_processes),
    Field("temperature_memory", _memory_temperature),
    Field("pcie.generation", _call("nvmlDeviceGetCurrPcieLinkGeneration")),
    Field("pcie.width", _call("nvmlDeviceGetCurrPcieLinkWidth")),
    Field("pcie.replays", _call("nvmlDeviceGetPcieReplayCounter")),
    Field("nvlink", read_nvlink),
    Field("ecc", _ecc),
    Field("rows", _rows),
    Field("mig", _mig),
    Field("persistence", _flag("nvmlDeviceGetPersistenceMode")),
    Field("compute_mode", _compute_mode),
    Field("pcie.rx", _call("nvmlDeviceGetPcieThroughput", PCIE_RX, scale=1000)),
    Field("pcie.tx", _call("nvmlDeviceGetPcieThroughput", PCIE_TX, scale=1000)),
)
"""Asked every few seconds. The driver counts PCIe traffic for 20 ms before it answers: last."""
