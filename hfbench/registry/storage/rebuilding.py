"""Files rebuilt from xorbs: each once at a time, readable while it grows, kept only when its SHA-256 is right."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from hfbench.registry.storage.cache import Cache
from hfbench.registry.storage.drafts import Draft
from hfbench.registry.storage.layout import Layout
from hfbench.registry.storage.threads import in_a_stoppable_thread, in_a_thread
from hfbench.registry.storage.trust import DamagedError, Trust
from hfbench.registry.xet.hashes import spelled
from hfbench.registry.xet.rebuild import Indexes, rebuilt
from hfbench.registry.xet.shards import Term
from hfbench.registry.xet.xorbs import XorbError
from hfbench.units import MIB

PIECE = MIB
GLANCE = 0.02
"""Seconds between two looks at a file that grows."""


class GivenUpError(DamagedError):
    """The hub stops, or whoever asked has left: nothing is known of the content."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make a file: its hash and size, and the stretches of xorbs with their indexes."""

    sha256: str
    size: int
    terms: tuple[Term, ...]
    indexes: Indexes


class Rebuilding:
    """One file on its way into the cache."""

    def __init__(self, draft: Draft, keep_as: Path) -> None:
        self.draft, self.keep_as = draft, keep_as
        self.task: asyncio.Task[None] | None = None
        self.waiting = 0

    async def follow(self) -> AsyncIterator[bytes]:
        """The bytes as they are written; the last of them only when the whole was found to be right."""
        assert self.task is not None
        self.waiting += 1  # it goes on when a reader leaves: another one will come
        handle, at = await self._open(), 0
        try:
            while True:
                over, ready = self.task.done(), self.draft.size
                if over:
                    await self.task
                if ready - at > (0 if over else PIECE):
                    data = await in_a_thread(os.pread, handle, min(PIECE, ready - at), at)
                    at += len(data)
                    yield data
                elif over:
                    return
                else:
                    await asyncio.sleep(GLANCE)
        finally:
            os.close(handle)

    async def _open(self) -> int:
        """The file where it lies: it may be kept, or given up, at any moment."""
        for path in (self.draft.path, self.keep_as):
            with suppress(FileNotFoundError):
                return os.open(path, os.O_RDONLY)
        assert self.task is not None
        await self.task
        raise DamagedError(f"{self.keep_as.name} went while it was read")


class Rebuilder:
    """Fills the cache; several requests for one file share the work."""

    def __init__(self, layout: Layout, cache: Cache, trust: Trust | None = None) -> None:
        self._layout, self._cache, self._trust = layout, cache, trust or Trust()
        self._closed = Event()
        self._running: dict[tuple[str, tuple[Term, ...]], Rebuilding] = {}

    def start(self, recipe: Recipe, keep_as: Path) -> Rebuilding:
        """The rebuilding of a file, begun now unless it runs."""
        if (running := self._running.get((recipe.sha256, recipe.terms))) is not None:
            return running
        rebuilding = Rebuilding(Draft(self._layout), keep_as)
        rebuilding.task = asyncio.create_task(self._run(recipe, rebuilding.draft, keep_as))
        self._running[recipe.sha256, recipe.terms] = rebuilding
        return rebuilding

    async def make(self, recipe: Recipe, keep_as: Path) -> None:
        """Rebuild a file and wait for it; DamagedError when it is not what its hash says. It ends when all who wait are
        cancelled."""
        rebuilding = self.start(recipe, keep_as)
        task = rebuilding.task
        assert task is not None
        rebuilding.waiting += 1
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            rebuilding.waiting -= 1
            if not rebuilding.waiting:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            raise
        rebuilding.waiting -= 1

    async def check(self, recipe: Recipe) -> None:
        """Rebuild a file without keeping it, to compare its hash; DamagedError when it differs. Cancelled, it ends."""

        def run(stop: Event) -> None:
            for _ in self._unless(stop, verified(self.pieces(recipe), recipe.sha256)):
                pass

        await in_a_stoppable_thread(run)

    def close(self) -> None:
        """End what runs: the hub stops."""
        self._closed.set()

    def _unless(self, stop: Event, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces; GivenUpError once nobody waits for them any more."""
        for piece in pieces:
            if stop.is_set() or self._closed.is_set():
                raise GivenUpError("the rebuilding was given up")
            yield piece

    def pieces(self, recipe: Recipe, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes of a file from `start` to `end`, straight from the xorbs; DamagedError where one was damaged."""
        try:
            yield from rebuilt(
                recipe.terms, recipe.indexes, lambda xorb: self._layout.xorb(spelled(xorb)), start=start, end=end
            )
        except (XorbError, FileNotFoundError) as error:
            raise DamagedError(f"{recipe.sha256} cannot be rebuilt: {error}") from error

    async def _run(self, recipe: Recipe, draft: Draft, keep_as: Path) -> None:
        def run(stop: Event) -> None:
            with draft:
                self._cache.shrink(recipe.size if is_cached else 0)
                for piece in self._unless(stop, verified(self.pieces(recipe), recipe.sha256)):
                    draft.write(piece)
                draft.keep(keep_as, durable=not is_cached)
            self._trust.note(keep_as)
            self._cache.shrink()

        is_cached = keep_as == self._layout.cached(recipe.sha256)
        try:
            await in_a_stoppable_thread(run)
        finally:
            with suppress(KeyError):
                del self._running[recipe.sha256, recipe.terms]


def verified(pieces: Iterable[bytes], sha256: str) -> Iterator[bytes]:
    """The pieces, gathered to a MiB; the last one comes only when the hash of all is right, else DamagedError."""
    digest, held = hashlib.sha256(), b""
    for piece in gathered_pieces(pieces):
        digest.update(piece)
        if held:
            yield held
        held = piece
    if digest.hexdigest() != sha256:
        raise DamagedError(f"what was rebuilt does not have the SHA-256 {sha256}")
    if held:
        yield held


def gathered_pieces(pieces: Iterable[bytes], least: int = PIECE) -> Iterator[bytes]:
    """Small pieces joined until they have so many bytes."""
    some: list[bytes] = []
    size = 0
    for piece in pieces:
        some.append(piece)
        size += len(piece)
        if size >= least:
            yield b"".join(some)
            some, size = [], 0
    if some:
        yield b"".join(some)


async def in_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of an iterator that blocks, each made in a thread."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece


__all__ = ["DamagedError", "GivenUpError", "Rebuilder", "Recipe", "gathered_pieces", "in_thread", "verified"]
