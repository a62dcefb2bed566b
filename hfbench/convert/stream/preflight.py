"""Whether this machine has the disk and the memory for a conversion, asked before anything is written."""

from __future__ import annotations

import os
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.units import show_bytes

SPARE_DISK = 16 << 20
"""Bytes left for manifests and the file system itself."""

BASE_MEMORY = 64 << 20
"""Of the interpreter with numpy."""


def check_disk(folder: Path, wanted: int) -> None:
    """HfbenchError when the disk of an existing folder has not room for so many bytes."""
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if wanted + SPARE_DISK > free:
        missing = wanted + SPARE_DISK - free
        found = f"{show_bytes(wanted)} are to be written, {show_bytes(free)} are free"
        raise HfbenchError(found, where=folder.parent, remedy=f"free {show_bytes(missing)} or choose another disk")


def check_memory(wanted: int) -> None:
    """HfbenchError when so many bytes of memory are not to be had."""
    free = _available()
    if free is not None and wanted > free:
        found = f"{show_bytes(wanted)} of memory are needed, {show_bytes(free)} are available"
        raise HfbenchError(found, remedy="end other programs or use fewer threads")


def _available() -> int | None:
    """Bytes the kernel would give, or None where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)
    except OSError:
        return None
