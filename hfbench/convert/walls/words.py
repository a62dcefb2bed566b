"""One line of figures for each wall."""

from __future__ import annotations

from hfbench.convert.walls.results import ForwardWall, TaskWall, WeightsWall
from hfbench.units import show_bytes

WORTH_A_RATE = 64 << 20
"""Bytes from which on reading them takes longer than opening files."""


def weights_words(wall: WeightsWall) -> str:
    """`54 tensors, 1.2 MB, bit by bit at 1.9 GB/s`."""
    if not wall.tensors:
        return wall.reason
    how = f"as {wall.cast} rounds" if wall.cast else "bit by bit"
    rate = f" at {show_bytes(wall.rate)}/s" if wall.bytes >= WORTH_A_RATE else ""
    return f"{wall.tensors:,} tensors, {show_bytes(wall.bytes)}, {how}{rate}"


def forward_words(wall: ForwardWall) -> str:
    """`hfbench's own pass: largest difference 2.1e-06 (3.0e-07 of the largest logit), top-5 100 % of 176 positions`."""
    if not wall.positions:
        return wall.reason
    apart = f"largest difference {wall.max_abs:.1e} ({wall.relative:.1e} of the largest logit)"
    apart = apart if wall.max_abs else "no difference at all"
    return f"{wall.by}: {apart}, top-5 {wall.top5:.1%} of {wall.positions} positions".removeprefix(": ")


def task_words(wall: TaskWall) -> str:
    """`perplexity 12.31 and 12.31, 32 generated tokens alike`."""
    if wall.perplexity is None:
        return wall.reason
    said = [f"perplexity {wall.perplexity.reference:.6g} and {wall.perplexity.converted:.6g}"]
    if wall.greedy:
        said.append(f"{wall.greedy.tokens} generated tokens " + ("differ" if wall.greedy.first_difference else "alike"))
    return ", ".join(said)
