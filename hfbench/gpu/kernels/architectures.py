"""What a streaming multiprocessor of each architecture has, and how many blocks of a kernel share one."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from hfbench.errors import UsageError
from hfbench.text import did_you_mean

REGISTER_UNIT = 256
"""Registers are given to a warp in steps of so many."""
PARTITIONS = 4
"""A multiprocessor has so many schedulers, each with its share of the registers."""
WARP = 32


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One compute capability; memory in bytes, all else for each multiprocessor."""

    name: str
    cards: tuple[str, ...]
    shared_block: int
    """The most shared memory a block may ask for."""
    shared_multiprocessor: int
    shared_reserved: int
    """Shared memory each block takes for the system."""
    registers: int
    warps: int
    blocks: int
    tensor_columns: int = 0
    """Columns of tensor memory, 0 where there is none."""

    @property
    def number(self) -> int:
        """90 for sm_90."""
        return int(self.name.removeprefix("sm_"))


@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """Warps at work as a share of those a multiprocessor holds, at best; and what keeps it from more."""

    share: float
    blocks: int
    limited_by: str


@lru_cache(maxsize=1)
def architectures() -> dict[str, Architecture]:
    """Every architecture in the table, by name."""
    read = tomllib.loads((files("hfbench.gpu.kernels") / "architectures.toml").read_text("utf-8"))
    return {
        name: Architecture(name=name, **{**row, "cards": tuple(row["cards"])})
        for name, row in read.items()
        if isinstance(row, dict)
    }


def find_architecture(text: str) -> Architecture:
    """`sm_90`, `90`, `9.0`, `sm_90a` or a card such as `H100`; UsageError when it is none of them."""
    known = architectures()
    word = text.strip().lower()
    if (found := re.fullmatch(r"(?:sm_?)?(\d+)(?:\.(\d))?[af]?", word)) and (
        name := f"sm_{found[1]}{found[2] or ''}"
    ) in known:
        return known[name]
    cards = {card.lower(): each for each in known.values() for card in each.cards}
    if word in cards:
        return cards[word]
    hint = did_you_mean(word, [*known, *cards]) or f"known: {', '.join(known)}"
    raise UsageError(f"{text[:40]!r} is no architecture known here", remedy=hint)


def occupancy(on: Architecture, *, registers: int, shared: int, warps: int) -> Occupancy:
    """How many blocks of so many warps share a multiprocessor, by registers a thread and shared memory a block.

    As in NVIDIA's cuda_occupancy.h; an upper bound, since a grid may be too small to fill the card.
    """
    per_warp = -(-max(registers, 1) * WARP // REGISTER_UNIT) * REGISTER_UNIT
    by_registers = on.registers // PARTITIONS // per_warp * PARTITIONS // warps
    by_shared = on.shared_multiprocessor // (shared + on.shared_reserved) if shared else on.blocks
    limits = {
        "warps": on.warps // warps,
        "blocks": on.blocks,
        "registers": by_registers,
        "shared memory": by_shared if shared <= on.shared_block else 0,
    }
    limit = min(limits, key=lambda name: limits[name])
    return Occupancy(share=limits[limit] * warps / on.warps, blocks=limits[limit], limited_by=limit)
