"""Looks at every address the interpreter is to touch: what is read outside the arguments, and what is nowhere near."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton.runtime import interpreter


@dataclass(frozen=True, kw_only=True)
class Region:
    """One storage in memory: its own bytes, and the bands around them."""

    names: tuple[str, ...]
    begin: int
    end: int
    band: int


class Astray(Exception):
    """A kernel reads or writes where no argument is near."""


class Watched:
    """Stands for the native half of the interpreter: notes what touches a band, and raises Astray before anything wild.

    Stores into a band are not noted, for the guard bands show them; a load leaves no trace there, and an atomic update
    of a NaN none either.
    """

    def __init__(self, native: Any, regions: Sequence[Region]) -> None:
        self._native, self._regions = native, regions
        self._notes: dict[tuple[str, str, str], tuple[int, int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def load(self, pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        self._look("loads", pointers, mask, np.dtype(dtype).itemsize)
        return self._native.load(pointers, mask, other, dtype)

    def store(self, pointers: Any, value: Any, mask: Any) -> Any:
        self._look("stores", pointers, mask, value.dtype.itemsize)
        return self._native.store(pointers, value, mask)

    def atomic_rmw(self, operation: Any, pointers: Any, value: Any, mask: Any, order: Any) -> Any:
        self._look("updates", pointers, mask, value.dtype.itemsize)
        return self._native.atomic_rmw(operation, pointers, value, mask, order)

    def atomic_cas(self, pointers: Any, expected: Any, value: Any, order: Any) -> Any:
        self._look("updates", pointers, np.ones_like(pointers, dtype=bool), value.dtype.itemsize)
        return self._native.atomic_cas(pointers, expected, value, order)

    def notes(self) -> Iterator[str]:
        """What was loaded or updated beside an argument, in sentences."""
        for (verb, name, edge), (count, farthest) in self._notes.items():
            touched = f"{count:,} element{'s' if count > 1 else ''}"
            yield f"{verb} {edge} of {name}: {touched}, the farthest {farthest:,} beyond"

    def _look(self, verb: str, pointers: Any, mask: Any, size: int) -> None:
        pointers, mask = np.broadcast_arrays(pointers, mask)
        touched = pointers[mask.astype(bool)].astype(np.uint64)
        for region in self._regions:
            touched = touched[(touched < region.begin) | (touched > region.end - size)]
        if not len(touched):
            return
        for region in self._regions:
            near = (touched >= region.begin - region.band) & (touched <= region.end + region.band - size)
            if verb != "stores" and near.any():
                self._note(verb, region, touched[near], size)
            touched = touched[~near]
        if len(touched):
            raise Astray(f"{verb} {self._nearest(int(touched[0]), size)}")

    def _note(self, verb: str, region: Region, touched: Any, size: int) -> None:
        for edge, beyond in (
            ("before the start", region.begin - touched[touched < region.begin].astype(np.int64)),
            ("past the end", touched[touched >= region.begin].astype(np.int64) + size - region.end),
        ):
            if len(beyond):
                count, farthest = self._notes.get(key := (verb, region.names[0], edge), (0, 0))
                self._notes[key] = (count + len(beyond), max(farthest, -(-int(beyond.max()) // size)))

    def _nearest(self, address: int, size: int) -> str:
        """`12,345 elements past the end of y`: how far the nearest argument is."""
        if not self._regions:
            return "an address, though no argument is a tensor"
        apart = {
            region: (region.begin - address if address < region.begin else address - region.end + size)
            for region in self._regions
        }
        region = min(apart, key=lambda each: apart[each])
        side = "before the start" if address < region.begin else "past the end"
        return f"{-(-apart[region] // size):,} elements {side} of {region.names[0]}, far from every argument"


@contextmanager
def watched(regions: Sequence[Region]) -> Iterator[Watched]:
    """Watch what the interpreter does inside; an interpreter that is built otherwise goes unwatched."""
    native = getattr(interpreter, "_interpreter", None)
    found = Watched(native, regions)
    if native is None:
        yield found
        return
    interpreter._interpreter = found
    try:
        yield found
    finally:
        interpreter._interpreter = native
