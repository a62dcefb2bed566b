"""Weight files read in order by a thread, ahead of whoever maps them: faults of a mapping read in small pieces."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.gpu.loading.files import find_files
from hfbench.gpu.loading.page_cache import WARM, read_through, resident
from hfbench.gpu.memory import available_memory
from hfbench.gpu.reading import Unavailable

MOST_OF_MEMORY = 0.5
"""Share of the memory that is free or can be freed which files may take: a page cache that overflows helps nobody."""


@dataclass(frozen=True)
class Ahead:
    """Files on their way into the page cache; `read` is set file by file, also where a file could not be read."""

    read: tuple[threading.Event, ...]

    def wait(self) -> None:
        """Until the last file was read."""
        for each in self.read:
            each.wait()


def read_files(paths: Sequence[Path]) -> Ahead:
    """Begin to read files from the first to the last."""
    ahead = Ahead(tuple(threading.Event() for _ in paths))

    def run() -> None:
        for path, done in zip(paths, ahead.read, strict=True):
            try:
                with suppress(OSError):  # whoever maps the file says what is wrong with it
                    read_through(path)
            finally:
                done.set()

    threading.Thread(target=run, daemon=True, name="hfbench-reading-ahead").start()
    return ahead


def read_weights(folder: Path) -> Ahead | None:
    """Begin to read the safetensors files of a model; None where that would not help.

    It would not where the page cache holds them or is not to be looked at, or where memory has too little room.
    """
    try:
        files = find_files(folder).safetensors
        held = resident(files)
        size = sum(each.stat().st_size for each in files)
    except (HfbenchError, OSError):
        return None
    if not files or isinstance(held, Unavailable) or held >= WARM or size > MOST_OF_MEMORY * (available_memory() or 0):
        return None
    return read_files(files)
