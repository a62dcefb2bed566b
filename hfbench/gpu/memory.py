"""Peaks of host and device memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
MEMORY = Path("/proc/meminfo")
RESET_PEAK = "5"
"""Written to clear_refs, sets the peak back to what is resident now (proc(5))."""


@dataclass(frozen=True, kw_only=True)
class PeakMemory:
    """Most memory held at once, loading included. Resident bytes count mapped weight files;
    `cuda_*` are of torch's allocator, or None with the `reason`."""

    rss_bytes: int | None
    cuda_allocated_bytes: int | None
    cuda_reserved_bytes: int | None
    reason: str = ""


def available_memory() -> int | None:
    """Bytes the kernel would give (MemAvailable), or None where it does not say."""
    try:
        match = re.search(r"^MemAvailable:\s+(\d+) kB$", MEMORY.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def forget_peak() -> None:
    """Start counting the resident peak anew, for a process that did other work before."""
    try:
        CLEAR.write_text(RESET_PEAK)
    except OSError:
        pass  # the peak then spans the life of the process, which is still an upper bound


def peak_memory(device: torch.device) -> PeakMemory:
    """The peaks since `forget_peak`; torch's allocator counts from its own start."""
    if device.type != "cuda":
        return PeakMemory(
            rss_bytes=_peak_resident(),
            cuda_allocated_bytes=None,
            cuda_reserved_bytes=None,
            reason=f"no CUDA memory: the run was on {device}",
        )
    import torch

    return PeakMemory(
        rss_bytes=_peak_resident(),
        cuda_allocated_bytes=torch.cuda.max_memory_allocated(device),
        cuda_reserved_bytes=torch.cuda.max_memory_reserved(device),
    )


def _peak_resident() -> int | None:
    """VmHWM, not getrusage: the latter keeps the peak of the process that started this one."""
    try:
        match = re.search(r"^VmHWM:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None
