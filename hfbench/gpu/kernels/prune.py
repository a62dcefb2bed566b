"""Which configurations a GPU cannot run, from the table of the compiler: they are never tried."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.gpu.kernels.architectures import WARP, Architecture
from hfbench.gpu.kernels.results import StaticRow

NOT_RUN = {
    "refused": "",  # its reason says it
    "failed": "does not compile: ",
    "timeout": "was not compiled in time: ",
    "crash": "the compiler crashed: ",
}


def prune(rows: Sequence[StaticRow], on: Architecture) -> dict[str, str]:
    """Why each configuration that cannot run cannot, by its label; those that only spill are left, to be timed."""
    return {row.config: reason for row in rows if (reason := _why_not(row, on))}


def _why_not(row: StaticRow, on: Architecture) -> str:
    if row.verdict in NOT_RUN:
        return f"{on.name}: {NOT_RUN[row.verdict]}{row.reason}"
    registers = row.loaded_registers or row.registers or 0
    if row.blocks == 0:
        wanted = registers * WARP * row.warps
        return f"{on.name}: {wanted:,} registers for {row.warps} warps, a multiprocessor has {on.registers:,}"
    return ""
