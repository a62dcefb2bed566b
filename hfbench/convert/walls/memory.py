"""How much memory programs may still take."""

from __future__ import annotations

import re
from pathlib import Path

MEMORY = Path("/proc/meminfo")


def free_memory() -> int | None:
    """Bytes of memory that may still be taken, as the kernel counts them; None where it does not tell."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", MEMORY.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None
