"""Takes the files that come within a commit: small ones into the database in portions, the others to disk."""

from __future__ import annotations

import asyncio
import hashlib

from hfbench.registry.database.content import FILE, LOST, Blob, add_blob, add_inline, find_blob
from hfbench.registry.database.engine import Database
from hfbench.registry.storage.drafts import Draft
from hfbench.registry.storage.layout import Layout
from hfbench.units import KIB, MIB

LARGEST_INLINE = 64 * KIB
"""Bytes of a file that is kept in the database: ten thousand small files are one transaction, not as many fsyncs."""
PORTION = 4 * MIB


class Intake:
    """Keeps contents so that they are durable before the commit that names them."""

    def __init__(self, database: Database, layout: Layout) -> None:
        self._database, self._layout = database, layout
        self._waiting: dict[str, bytes] = {}
        self._waiting_bytes = 0

    async def take(self, content: bytes) -> str:
        """Keep a content; its SHA-256. Small ones are durable only after `finish`."""
        sha256 = hashlib.sha256(content).hexdigest()
        if len(content) > LARGEST_INLINE:
            await self._keep_file(sha256, content)
        elif sha256 not in self._waiting:
            self._waiting[sha256] = content
            self._waiting_bytes += len(content) + 256
            if self._waiting_bytes >= PORTION:
                await self.finish()
        return sha256

    async def finish(self) -> None:
        """Keep what still waits."""
        if not self._waiting:
            return
        async with self._database.writing() as connection:
            await add_inline(connection, self._waiting)
        self._waiting, self._waiting_bytes = {}, 0

    async def _keep_file(self, sha256: str, content: bytes) -> None:
        async with self._database.reading() as connection:
            known = await find_blob(connection, sha256)
        if known is None or known.place in (FILE, LOST):
            await asyncio.to_thread(self._write, sha256, content)
        async with self._database.writing() as connection:
            await add_blob(connection, Blob(sha256, len(content), FILE))

    def _write(self, sha256: str, content: bytes) -> None:
        with Draft(self._layout) as draft:
            draft.write(content)
            draft.keep(self._layout.blob(sha256))
