"""What is known of a device's memory at one moment, as a plain record with the arithmetic between its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CONTEXT_BYTES = 600 * 2**20
"""What a CUDA context with its loaded kernels takes at most as a rule; it belongs to a process, not to a stream."""


@dataclass(frozen=True, kw_only=True)
class OtherProcess:
    """A process that holds memory of the same device. `bytes` is None where the driver does not tell it."""

    pid: int
    bytes: int | None
    who: str = ""
    """User, command or job, as far as they are known."""


@dataclass(frozen=True, kw_only=True)
class MemoryPicture:
    """One device's memory in bytes; None is not known, never zero. `failed` when an allocation was refused."""

    device: str = ""
    card: str = ""
    failed: bool = False
    outside: str = ""
    """Who asked for memory and got none, where that was not torch's allocator: `cuBLAS`, `NCCL`, `CUDA`."""
    request: int | None = None
    """What was asked of the driver: torch rounds a tensor up to a segment of 2 MiB, 20 MiB or a multiple of 2 MiB."""
    total: int | None = None
    """What CUDA calls the device: of a divided card, the slice."""
    card_total: int | None = None
    """The whole card, where the device is a slice of it."""
    free: int | None = None
    driver: int | None = None
    """Held by driver and firmware, beside all processes."""
    allocated: int | None = None
    """Held by live tensors."""
    reserved: int | None = None
    """Taken from the driver by torch's allocator."""
    reserved_peak: int | None = None
    largest_free: int | None = None
    """The largest free block that the request could have been cut from."""
    inactive_split: int | None = None
    """Free blocks in segments that something else still holds a part of."""
    private_reserved: int | None = None
    """Segments that belong to private pools, as CUDA graphs have them."""
    private_cached: int | None = None
    """Free blocks of private pools: only the graphs of the pool can use them."""
    expandable: bool | None = None
    """True where segments of the allocator can grow (`expandable_segments:True`)."""
    cap: int | None = None
    """What `set_per_process_memory_fraction` allows."""
    process_used: int | None = None
    """All this process holds of the device, by the driver's count."""
    others: tuple[OtherProcess, ...] = ()
    sampled_peak: int | None = None
    """Most of the device that samples saw in use."""

    @property
    def cached(self) -> int | None:
        """Reserved by torch, held by no tensor and open to any request: what fragmentation can waste."""
        if self.reserved is None or self.allocated is None:
            return None
        return max(0, self.reserved - self.allocated - (self.private_cached or 0))

    @property
    def non_torch(self) -> int | None:
        """Of this process beside torch's allocator: context, kernels, cuBLAS, NCCL and other libraries."""
        if self.process_used is None or self.reserved is None:
            return None
        return max(0, self.process_used - self.reserved)

    @property
    def others_bytes(self) -> int:
        """What other processes hold, as far as it is told."""
        return sum(each.bytes or 0 for each in self.others)

    @property
    def unlisted(self) -> int | None:
        """In use, yet held by no process that was listed: those of other containers, or of a driver that is silent."""
        if self.total is None or self.free is None or self.process_used is None:
            return None
        return max(0, self.total - self.free - self.process_used - self.others_bytes - (self.driver or 0))

    @property
    def private(self) -> int:
        """What ending every graph would give back, as far as it is known."""
        return self.private_reserved if self.private_reserved is not None else self.private_cached or 0

    @property
    def slice(self) -> bool:
        """True when the device is a part of a divided card."""
        return self.card_total is not None and self.total is not None and self.total < self.card_total


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One reason, with what shows it and what to do. `enough` when the request would fit without it."""

    id: str
    title: str
    evidence: str
    remedy: str
    bytes: int
    enough: bool


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A picture, the causes found in it with those that alone explain the failure first, and where it comes from."""

    picture: MemoryPicture
    causes: tuple[Cause, ...]
    sources: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def cause(self) -> Cause | None:
        """The one to mend first; None when nothing is wrong, or nothing that is known explains it."""
        return self.causes[0] if self.causes else None


def merged(pictures: Sequence[MemoryPicture]) -> MemoryPicture:
    """One picture of several sources: the first that knows a value tells it."""
    told: dict[str, object] = {}
    for picture in pictures:
        for name, value in vars(picture).items():
            if not (value is None or value is False or value in ("", ())):  # a zero is told
                told.setdefault(name, value)
    return MemoryPicture(**told)  # type: ignore[arg-type]
