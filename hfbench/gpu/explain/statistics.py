"""Statistics of torch's allocator in this process: as a picture, and as metrics of a job."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from hfbench.gpu.explain.picture import MemoryPicture
from hfbench.gpu.explain.segments import Snapshot, read_raw

METRICS = {
    "torch.allocated": "allocated_bytes.all.current",
    "torch.reserved": "reserved_bytes.all.current",
    "torch.active": "active_bytes.all.current",
    "torch.inactive_split": "inactive_split_bytes.all.current",
    "torch.allocated_peak": "allocated_bytes.all.peak",
    "torch.reserved_peak": "reserved_bytes.all.peak",
}
"""Names of metrics, in bytes, and the keys of `torch.cuda.memory_stats` they come from."""
COUNTS = {"torch.alloc_retries": "num_alloc_retries", "torch.ooms": "num_ooms"}
"""The same for what is counted."""
LARGEST_FREE = "torch.largest_free"
"""The largest free block that is open to any request, in bytes: from the segments, since no statistic tells it."""


class Statistics(Protocol):
    """Where figures of an allocator come from. Everything is None while there is no allocator to ask."""

    name: str

    def read(self) -> Mapping[str, Any] | None:
        """What `torch.cuda.memory_stats` gives."""

    def snapshot(self) -> Snapshot | None:
        """Its segments and blocks."""

    def limits(self) -> MemoryPicture | None:
        """What the device has, what is free and what the process is allowed, by CUDA."""


class TorchStatistics:
    """torch's allocator for CUDA device `index` of this process.

    Never imports torch and never starts CUDA: before the action has done both there is nothing to tell.
    """

    name = "torch"

    def __init__(self, index: int) -> None:
        self.index = index

    def read(self) -> Mapping[str, Any] | None:
        """The statistics, which ask the driver nothing and wait for no kernel."""
        cuda = self._cuda()
        return dict(cuda.memory_stats(self.index)) if cuda is not None else None

    def snapshot(self) -> Snapshot | None:
        """The segments of all devices of the process."""
        cuda = self._cuda()
        return read_raw(cuda.memory._snapshot()) if cuda is not None else None

    def limits(self) -> MemoryPicture | None:
        """By `cudaMemGetInfo`, and the fraction where this torch tells it."""
        cuda = self._cuda()
        if cuda is None:
            return None
        free, total = cuda.mem_get_info(self.index)
        share = getattr(cuda, "get_per_process_memory_fraction", lambda _: 1.0)(self.index)
        return MemoryPicture(
            device=f"cuda:{self.index}",
            card=str(cuda.get_device_name(self.index)),
            total=total,
            free=free,
            cap=int(share * total) if share < 1 else None,
        )

    def _cuda(self) -> Any:
        """torch.cuda once it works for this process, else None; torch may be half imported by another thread."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        started = getattr(cuda, "is_initialized", None)
        return cuda if started is not None and started() else None


def statistics_picture(told: Mapping[str, Any], device: str = "") -> MemoryPicture:
    """The keys of `torch.cuda.memory_stats` as a picture; a key that is not there is not known."""
    pools = [value for key, value in told.items() if _is_pool(key) and isinstance(value, int)]
    return MemoryPicture(
        device=device,
        allocated=_whole(told, METRICS["torch.allocated"]),
        reserved=_whole(told, METRICS["torch.reserved"]),
        reserved_peak=_whole(told, METRICS["torch.reserved_peak"]),
        inactive_split=_whole(told, METRICS["torch.inactive_split"]),
        private_reserved=sum(pools) if pools else None,
    )


def metrics(told: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    """Name, value and unit of all that a job reports of its allocator."""
    for names, unit in ((METRICS, "B"), (COUNTS, "")):
        for name, key in names.items():
            if (value := _whole(told, key)) is not None:
                yield name, float(value), unit


def _is_pool(key: str) -> bool:
    """`reserved_bytes_by_private_pools.0_1.all.current`; older torch has no such key."""
    return key.startswith("reserved_bytes_by_private_pools.") and key.endswith(".all.current")


def _whole(told: Mapping[str, Any], key: str) -> int | None:
    value = told.get(key)
    return value if type(value) is int and value >= 0 else None
