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


USUAL_WIDE = Claim(
    name="gpus-screen-bytes-120x40",
    sentence="a repaint of the GPUs screen with 8 GPUs at 120x40 writes at most 3 kB",
    bound=3000,
    unit="B",
)
USUAL_SMALL = Claim(
    name="gpus-screen-bytes-80x24",
    sentence="a repaint of the GPUs screen with 8 GPUs at 80x24 writes at most 3 kB",
    bound=3000,
    unit="B",
)
LARGEST_WIDE = Claim(
    name="gpus-screen-largest-120x40",
    sentence="no repaint of the GPUs screen with 8 GPUs at 120x40 writes more than 3 kB",
    bound=3000,
    unit="B",
)
LARGEST_SMALL = Claim(
    name="gpus-screen-largest-80x24",
    sentence="no repaint of the GPUs screen with 8 GPUs at 80x24 writes more than 3 kB",
    bound=3000,
    unit="B",
)
CLAIMS = {(120, 40): (USUAL_WIDE, LARGEST_WIDE), (80, 24): (USUAL_SMALL, LARGEST_SMALL)}


def measured(scratch: Path, columns: int, rows: int) -> list[Record]:
    """Repaints of one terminal."""
    told = {**environment(scratch, f"{columns}x{rows}"), DEMO_GPUS: str(CARDS)}
    usual, largest = CLAIMS[columns, rows]
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
        finish(*(record for size in CLAIMS for record in measured(Path(folder), *size)))


if __name__ == "__main__":
    main()
