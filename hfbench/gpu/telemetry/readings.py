"""What is known of GPUs at one moment, as frozen dataclasses: every value is a value or the reason it is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hfbench.gpu.reading import Unavailable, Value

UNREAD = Unavailable("not read yet")
"""Stands where nothing was asked so far."""

Text: TypeAlias = str | Unavailable
Flag: TypeAlias = bool | Unavailable
Words: TypeAlias = tuple[str, ...] | Unavailable


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
class TemperatureLimits:
    """Degrees Celsius at which clocks are lowered, at which the card turns itself off, and the memory's own limit."""

    slowdown: Value = UNREAD
    shutdown: Value = UNREAD
    memory: Value = UNREAD


@dataclass(frozen=True, kw_only=True)
class Pcie:
    """The link to the host: generation and lanes now and at most, bytes a second, and packets sent again."""

    generation: Value = UNREAD
    generation_max: Value = UNREAD
    width: Value = UNREAD
    width_max: Value = UNREAD
    rx: Value = UNREAD
    """Bytes a second from the host to the card, over the driver's last 20 ms."""
    tx: Value = UNREAD
    replays: Value = UNREAD


@dataclass(frozen=True, kw_only=True)
class NvLinks:
    """The links to other cards, and errors and bytes of all of them together since the driver was loaded."""

    active: tuple[Flag, ...] = ()
    """One entry a link, in their order."""
    crc_errors: Value = UNREAD
    replay_errors: Value = UNREAD
    recovery_errors: Value = UNREAD
    rx_bytes: Value = UNREAD
    tx_bytes: Value = UNREAD


@dataclass(frozen=True, kw_only=True)
class Ecc:
    """Memory errors: `volatile` since the driver was loaded, `aggregate` over the life of the card."""

    enabled: Flag = UNREAD
    volatile_corrected: Value = UNREAD
    volatile_uncorrected: Value = UNREAD
    aggregate_corrected: Value = UNREAD
    aggregate_uncorrected: Value = UNREAD


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Memory taken out of use: pages on older cards, rows since Ampere. `pending` waits for a reset."""

    retired_single_bit: Value = UNREAD
    retired_double_bit: Value = UNREAD
    retirement_pending: Flag = UNREAD
    remapped_corrected: Value = UNREAD
    remapped_uncorrected: Value = UNREAD
    remapping_pending: Flag = UNREAD
    remapping_failed: Flag = UNREAD


@dataclass(frozen=True, kw_only=True)
class Xid:
    """A critical error the driver reported while somebody watched; `at` is seconds since the epoch."""

    code: int
    meaning: str
    at: float


@dataclass(frozen=True, kw_only=True)
class MigInstance:
    """One slice of a card that is divided. Bytes."""

    index: int
    uuid: Text
    gpu_instance: Value
    compute_instance: Value
    memory_used: Value
    memory_total: Value


@dataclass(frozen=True, kw_only=True)
class Mig:
    """Whether the card is divided, whether it will be after a reset, and its slices."""

    enabled: Flag = UNREAD
    pending: Flag = UNREAD
    instances: tuple[MigInstance, ...] | Unavailable = UNREAD


@dataclass(frozen=True, kw_only=True)
class GpuProcess:
    """A process that holds memory of a card. `job` is the id of the job it works for, empty when it is none of ours."""

    pid: int
    kinds: tuple[Literal["compute", "graphics"], ...]
    memory: Value
    """Bytes on this card."""
    user: Text
    command: Text
    job: str = ""


@dataclass(frozen=True, kw_only=True)
class DeviceReading:
    """One GPU. Temperature in degrees Celsius, power in watts, clocks in MHz, energy in joules since the driver was
    loaded. `reason` is set when it is lost, and then stands for every value."""

    index: int
    uuid: Text
    name: Text
    memory: Memory
    utilization: Utilization
    temperature: Value
    power: Value
    power_limit: Value
    clock_sm: Value
    clock_memory: Value
    clock_sm_max: Value = UNREAD
    clock_memory_max: Value = UNREAD
    energy: Value = UNREAD
    temperature_memory: Value = UNREAD
    temperature_limits: TemperatureLimits = TemperatureLimits()
    clock_reasons: Words = UNREAD
    """Why the clocks are where they are, `idle` included; empty when nothing holds them back."""
    throttle: Words = UNREAD
    """Those of `clock_reasons` by which a busy card is slower than it could be."""
    pcie: Pcie = Pcie()
    nvlink: NvLinks | Unavailable = UNREAD
    ecc: Ecc = Ecc()
    rows: Rows = Rows()
    xids: tuple[Xid, ...] | Unavailable = UNREAD
    """Seen since the sampler began, newest last."""
    mig: Mig = Mig()
    persistence: Flag = UNREAD
    compute_mode: Text = UNREAD
    compute_capability: Text = UNREAD
    bus: Text = UNREAD
    """PCI bus id."""
    processes: tuple[GpuProcess, ...] | Unavailable = UNREAD
    reason: str = ""
    stale: Mapping[str, float] = field(default_factory=dict)
    """Seconds since a value was read, for those fields that the driver did not answer when last asked. A part of a
    field has a dot in its name: `pcie.rx`."""
    waiting: str = ""
    """What the driver does not answer, in one clause; empty when it answers everything."""

    @property
    def age(self) -> float:
        """Seconds since the oldest of the stale values was read; 0 when none is stale."""
        return max(self.stale.values(), default=0.0)


@dataclass(frozen=True, kw_only=True)
class GpuSnapshot:
    """All GPUs at one moment. `reason` says in one clause why there are none."""

    driver: Text
    cuda: Text
    reason: str
    devices: tuple[DeviceReading, ...]
    demo: bool = False
    """True when the cards are made up."""
    at: float = 0.0
    """Seconds since the epoch."""
    waiting: str = ""
    """What the driver as a whole does not answer, while older values are shown."""
