"""How far a library that tells nothing is with reading files: by what the kernel counts for this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

COUNTERS = Path("/proc/self/io")
EVERY = 0.5
"""Seconds between two looks."""


@contextlib.contextmanager
def telling_reads(run: Run, phase: str, total: int) -> Iterator[None]:
    """Report bytes read within the block as progress towards `total`; all of it when the block ends well."""
    began, done = bytes_read(), threading.Event()

    def tell() -> None:
        while not done.wait(EVERY):
            if began is not None and (now := bytes_read()) is not None:
                run.progress(phase, min(now - began, total), total, "B")

    run.progress(phase, 0, total, "B")
    teller = threading.Thread(target=tell, name=phase, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
    run.progress(phase, total, total, "B")


def bytes_read() -> int | None:
    """Bytes this process has read from files so far, cached or not; None where the kernel does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(COUNTERS.read_text().split()[1])
    return None
