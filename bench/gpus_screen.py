"""What the GPUs screen writes a repaint: eight made-up cards, every value of them moving each second."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from claims import Claim, Record, finish, run
from terminal import Terminal
from workbench import COMMAND, FIRST_FRAME, environment, versions

from hfbench.gpu.telemetry.demo import DEMO_GPUS

CARDS = 8
GAP = 0.1
"""Seconds of silence between two repaints: cards are read once a second."""
REPAINTS = 45
SIZES = ((120, 40), (80, 24))


def claims(columns: int, rows: int) -> tuple[Claim, Claim]:
    """The usual repaint and the largest, on a terminal of this size."""
    place = f"with 8 GPUs at {columns}x{rows}"
    return (
        Claim(
            name=f"gpus-screen-bytes-{columns}x{rows}",
            sentence=f"a repaint of the GPUs screen {place} writes at most 3 kB",
            bound=3000,
            unit="B",
        ),
        Claim(
            name=f"gpus-screen-largest-{columns}x{rows}",
            sentence=f"no repaint of the GPUs screen {place} writes more than 3 kB",
            bound=3000,
            unit="B",
        ),
    )


def measured(scratch: Path, columns: int, rows: int) -> list[Record]:
    """Repaints of one terminal."""
    told = {**environment(scratch, f"{columns}x{rows}"), DEMO_GPUS: str(CARDS)}
    usual, largest = claims(columns, rows)
    with Terminal(COMMAND, columns=columns, rows=rows, environment=told) as terminal:
        terminal.wait_for(FIRST_FRAME)
        terminal.drain(2.0)
        terminal.answer("3", "made up")
        terminal.read_for(15.0)  # the lines of the past fill their width
        sizes = [float(len(terminal.repaint(GAP))) for _ in range(REPAINTS)]
    each = iter(sizes)
    more = {"rounds": REPAINTS, "warmup": 0, "versions": versions(), "notes": {"cards": CARDS}}
    return [
        run(usual, lambda: next(each), **more),  # type: ignore[arg-type]
        run(largest, lambda: max(sizes), **{**more, "rounds": 1}),  # type: ignore[arg-type]
    ]


def main() -> None:
    """Measure both sizes and keep the records."""
    with tempfile.TemporaryDirectory(prefix="bench-gpus-") as folder:
        os.chdir(folder)
        finish(*(record for size in SIZES for record in measured(Path(folder), *size)))


if __name__ == "__main__":
    main()
