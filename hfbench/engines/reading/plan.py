"""TensorRT plans without anything beside them: a private archive of which only the size can be told."""

from __future__ import annotations

from pathlib import Path

from hfbench.engines.reading.found import Found, NoEngine, facts
from hfbench.models.files import describe_file
from hfbench.units import show_bytes

SUFFIXES = (".engine", ".plan", ".trt")


def read_plan(path: Path, folder: Path) -> Found:
    """A plan's size; NoEngine when it is empty or no plain file."""
    entry = describe_file(path, folder)
    if entry.problem or not entry.bytes:
        raise NoEngine(entry.problem or "is empty", where=path)
    return Found(
        kind="plan",
        what="TensorRT plan",
        path=path,
        size=entry.bytes,
        facts=facts(size=show_bytes(entry.bytes)),
        silent=(
            "anything: a plan is a private archive of TensorRT, no ELF file, and readelf and ldd say nothing of it",
            "the version of TensorRT and the GPU it was built for, which only a trial load tells",
        ),
    )
