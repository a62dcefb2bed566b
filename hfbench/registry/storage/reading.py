"""How a blob is read: from the database, from a file, or from xorbs. Decided here, for every route and every check."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.database.content import (
    FILE,
    INLINE,
    XET,
    find_blob,
    inline_content,
    xet_file_of,
    xorb_indexes,
)
from hfbench.registry.storage.cache import Cache
from hfbench.registry.storage.drafts import FULL
from hfbench.registry.storage.layout import Layout
from hfbench.registry.storage.rebuilding import (
    PIECE,
    DamagedError,
    Rebuilder,
    Recipe,
    gathered_pieces,
    in_thread,
    verified,
)
from hfbench.registry.storage.trust import Trust, stamp_of
from hfbench.registry.xet.hashes import spelled, unspelled
from hfbench.registry.xet.shards import unpack_terms
from hfbench.registry.xet.xorbs import XorbIndex
from hfbench.units import MIB

SOON = 64 * MIB
"""Files up to this size are rebuilt before the answer begins, and then sent as a file."""
HEADER_READ = 8 * MIB
"""Bytes fetched at a time where a header is read out of xorbs."""
PATIENCE = 8.0
"""Seconds a part of a file waits until the whole was read: clients wait ten for an answer to begin."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to read a blob of `size` bytes: from the database, from a file, or from xorbs.

    A file may have a recipe beside it, by which it can be made again. Unchecked is a file that was not read yet.
    """

    sha256: str
    size: int
    content: bytes | None = None
    path: Path | None = None
    recipe: Recipe | None = None
    unchecked: bool = False


class Reader:
    """Reads blobs, and fills the cache on the way."""

    def __init__(self, layout: Layout, cache: Cache, rebuilder: Rebuilder, trust: Trust) -> None:
        self._layout, self._cache, self._rebuilder, self._trust = layout, cache, rebuilder, trust

    async def plan(self, connection: AsyncConnection, sha256: str) -> Plan:
        """How to read a blob; DamagedError when the database knows it and the disk does not."""
        blob = await find_blob(connection, sha256)
        if blob is not None and blob.place == INLINE:
            content = await inline_content(connection, sha256)
            if content is not None and hashlib.sha256(content).hexdigest() == sha256:
                return Plan(sha256, blob.size, content=content)
        if blob is not None and blob.place == FILE:
            if self._trust.usable(path := self._layout.blob(sha256), blob.size):
                return Plan(sha256, blob.size, path=path)
        elif blob is not None and blob.place == XET:
            cached = self._cache.find(sha256)
            if cached is not None and not self._trust.usable(cached, blob.size):
                cached = None
            if cached is not None and self._trust.knows(cached):
                return Plan(sha256, blob.size, path=cached)
            if recipe := await self._recipe(connection, sha256):
                return Plan(sha256, blob.size, path=cached, recipe=recipe)
        raise DamagedError(f"the content of {sha256} is gone from this hub, or damaged")

    async def ready(self, plan: Plan, *, whole: bool) -> Plan:
        """The plan by which content is handed out: what was not read yet is read first, small files are rebuilt first.

        A whole large file is read as it is sent; a part of one that takes long to read goes out unchecked, and says
        so. DamagedError when the file is not what it should be, and cannot be made again.
        """
        if plan.path is not None and not self._trust.knows(plan.path):
            if whole and plan.size > SOON:
                return replace(plan, unchecked=True)
            try:
                checked = await self._trust.check(plan.path, plan.sha256, PATIENCE)
                return replace(plan, unchecked=not checked, recipe=None)
            except (DamagedError, FileNotFoundError):
                if plan.recipe is None:
                    raise
                plan = replace(plan, path=None)
        if plan.path is None and plan.recipe is not None and whole:
            return await self._as_file(plan, plan.recipe)
        return plan

    async def _as_file(self, plan: Plan, recipe: Recipe) -> Plan:
        """The plan with a path, where the file can be rebuilt soon enough."""
        if plan.size > SOON or not self._cache.admits(plan.size):
            return plan
        path = self._layout.cached(plan.sha256)
        try:
            await self._rebuilder.make(recipe, path)
        except OSError as error:
            if error.errno not in FULL:
                raise
            return plan  # sent as it is rebuilt
        return Plan(plan.sha256, plan.size, path=path)

    def stream(self, plan: Plan, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes `start` to `end`, for where no file can be handed over; errors come before the last byte."""
        if plan.content is not None:
            return in_thread(iter([plan.content[start:end]]))
        if plan.path is not None:
            pieces = _file_pieces(plan.path, start, end)
            if plan.unchecked and (start, end) == (0, plan.size):
                pieces = self._trust.pieces(plan.path, plan.sha256, pieces, stamp_of(plan.path))
            return in_thread(pieces)
        assert plan.recipe is not None
        if (start, end) != (0, plan.size):
            return in_thread(gathered_pieces(self._rebuilder.pieces(plan.recipe, start, end)))
        if self._cache.admits(plan.size):
            return self._rebuilder.start(plan.recipe, self._layout.cached(plan.sha256)).follow()
        return in_thread(verified(self._rebuilder.pieces(plan.recipe), plan.sha256))

    def open(self, plan: Plan) -> BinaryIO:
        """The blob as a file to seek in: for headers, not for whole files. Blocks."""
        if plan.content is not None:
            return io.BytesIO(plan.content)
        if plan.path is not None:
            return plan.path.open("rb")
        assert plan.recipe is not None
        return io.BufferedReader(_Rebuilt(self._rebuilder, plan.recipe), HEADER_READ)

    async def read(self, plan: Plan, most: int) -> bytes:
        """The first `most` bytes."""

        def run() -> bytes:
            with self.open(plan) as file:
                return file.read(most)

        return await asyncio.to_thread(run)

    async def _recipe(self, connection: AsyncConnection, sha256: str) -> Recipe | None:
        file = await xet_file_of(connection, sha256)
        if file is None:
            return None
        terms = unpack_terms(file.terms)
        names = {spelled(term.xorb) for term in terms}
        found = await xorb_indexes(connection, names)
        if len(found) < len(names):
            return None
        indexes = {unspelled(name): XorbIndex.unpack(packed) for name, packed in found.items()}
        return Recipe(sha256, file.size, terms, indexes)


class _Rebuilt(io.RawIOBase):
    """A file of xorbs, read where it is asked."""

    def __init__(self, rebuilder: Rebuilder, recipe: Recipe) -> None:
        self._rebuilder, self._recipe, self._at = rebuilder, recipe, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._recipe.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        end = min(self._at + len(buffer), self._recipe.size)
        if end <= self._at:
            return 0
        data = b"".join(self._rebuilder.pieces(self._recipe, self._at, end))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _file_pieces(path: Path, start: int, end: int) -> Iterator[bytes]:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
        file.seek(start)
        while start < end and (data := file.read(min(PIECE, end - start))):
            start += len(data)
            yield data
