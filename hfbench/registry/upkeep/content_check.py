"""Reads everything that is stored and compares it with its names: which blobs, xorbs and cached files are damaged."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select

from hfbench.registry.database.content import FILE, INLINE, XET
from hfbench.registry.database.schema import blobs, inline_blobs, xet_files, xorbs
from hfbench.registry.hub import Hub
from hfbench.registry.storage.layout import FANS
from hfbench.registry.upkeep.facts import Tell
from hfbench.registry.xet.hashes import spelled, unspelled
from hfbench.registry.xet.rebuild import TermError, check_terms, hash_of_terms
from hfbench.registry.xet.shards import unpack_terms
from hfbench.registry.xet.xorbs import XorbError, XorbIndex, verify_xorb

PAGE = 500


@dataclass(slots=True)
class Stored:
    """What is wrong with what is stored, a sentence by its hash; sizes and places of all blobs."""

    blobs: dict[str, str] = field(default_factory=dict)
    xorbs: dict[str, str] = field(default_factory=dict)
    cached: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    xorb_count: int = 0
    bytes_read: int = 0


async def check_content(hub: Hub, *, quick: bool, tell: Tell) -> Stored:
    """Compare all content with its names; quick looks at sizes alone."""
    found = Stored()
    await _check_xorbs(hub, found, quick=quick, tell=tell)
    await _check_blobs(hub, found, quick=quick, tell=tell)
    await _check_files_of_xorbs(hub, found)
    if not quick:
        await _check_cache(hub, found)
    return found


async def _pages(hub: Hub, key: Any, *columns: Any) -> AsyncIterator[list[Any]]:
    """All rows in portions, each read in a transaction of its own: the check may take hours."""
    last = ""
    while True:
        query = select(key, *columns).where(key > last).order_by(key).limit(PAGE)
        async with hub.database.reading() as connection:
            rows = list(await connection.execute(query))
        if not rows:
            return
        yield rows
        last = rows[-1][0]


async def _check_xorbs(hub: Hub, found: Stored, *, quick: bool, tell: Tell) -> None:
    async for rows in _pages(hub, xorbs.c.id, xorbs.c.size, xorbs.c.chunks):
        for name, size, packed in rows:
            tell("xorbs", found.xorb_count, None, "")
            found.xorb_count += 1
            path = hub.layout.xorb(name)
            if wrong := await asyncio.to_thread(_xorb_trouble, path, name, size, packed, quick):
                found.xorbs[name] = wrong
            found.bytes_read += 0 if quick else size


def _xorb_trouble(path: Path, name: str, size: int, packed: bytes, quick: bool) -> str:
    try:
        here = path.stat().st_size
        if here != size:
            return f"the file has {here:,} of {size:,} bytes"
        if quick:
            return ""
        with path.open("rb") as file:
            index = verify_xorb(file, size, unspelled(name))
    except FileNotFoundError:
        return "the file is gone"
    except (OSError, XorbError) as error:
        return f"the file is damaged: {error}"
    return "" if index.pack() == packed else "the database has another index than the file"


async def _check_blobs(hub: Hub, found: Stored, *, quick: bool, tell: Tell) -> None:
    async for rows in _pages(hub, blobs.c.sha256, blobs.c.size, blobs.c.place):
        for sha256, size, place in rows:
            tell("blobs", len(found.sizes), None, "")
            found.sizes[sha256] = size
            wrong = ""
            if place == FILE:
                wrong = await asyncio.to_thread(file_trouble, hub.layout.blob(sha256), sha256, size, quick)
                found.bytes_read += 0 if quick else size
            elif place == INLINE:
                wrong = await _inline_trouble(hub, sha256)
            elif place != XET:
                wrong = "its bytes were lost, and nobody sent them again"
            if wrong:
                found.blobs[sha256] = wrong


def file_trouble(path: Path, sha256: str, size: int, quick: bool = False) -> str:
    """What is wrong with a file that should have this hash and size; empty when nothing. Blocks."""
    try:
        here = path.stat().st_size
        if here != size:
            return f"the file has {here:,} of {size:,} bytes"
        if quick:
            return ""
        with path.open("rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return "the file is gone"
    except OSError as error:
        return f"the file cannot be read: {error.strerror}"
    return "" if same else "the file does not have the SHA-256 of its name"


async def _inline_trouble(hub: Hub, sha256: str) -> str:
    query = select(inline_blobs.c.content).where(inline_blobs.c.sha256 == sha256)
    async with hub.database.reading() as connection:
        content = (await connection.execute(query)).scalar()
    if content is None:
        return "its bytes are gone from the database"
    return "" if hashlib.sha256(content).hexdigest() == sha256 else "its bytes in the database are damaged"


async def _check_files_of_xorbs(hub: Hub, found: Stored) -> None:
    """A file of xorbs is right when they are, and its stretches have the hash that was compared when it came."""
    known: set[str] = set()
    async for rows in _pages(hub, xet_files.c.id, xet_files.c.sha256, xet_files.c.size, xet_files.c.terms):
        for id, sha256, size, packed in rows:
            if wrong := await _terms_trouble(hub, found, id, size, packed):
                found.blobs.setdefault(sha256, wrong)
            known.add(sha256)
    async for rows in _pages(hub, blobs.c.sha256, blobs.c.place):
        for sha256, place in rows:
            if place == XET and sha256 not in known:
                found.blobs[sha256] = "nothing tells of which xorbs it is made"


async def _terms_trouble(hub: Hub, found: Stored, id: str, size: int, packed: bytes) -> str:
    terms = unpack_terms(packed)
    names = {spelled(term.xorb) for term in terms}
    if wrong := [name for name in names if name in found.xorbs]:
        return f"it needs the xorb {wrong[0]}: {found.xorbs[wrong[0]]}"
    query = select(xorbs.c.id, xorbs.c.chunks)
    async with hub.database.reading() as connection:
        rows = [row for name in names for row in await connection.execute(query.where(xorbs.c.id == name))]
    indexes = {unspelled(name): XorbIndex.unpack(chunks) for name, chunks in rows}
    if len(indexes) < len(names):
        return "it needs a xorb that the database lacks"
    try:
        check_terms(terms, indexes)
    except TermError as error:
        return f"it cannot be made: {error}"
    right = spelled(hash_of_terms(terms, indexes)) == id and sum(term.length for term in terms) == size
    return "" if right else "its stretches of xorbs make another file"


async def _check_cache(hub: Hub, found: Stored) -> None:
    """Files in the cache are handed out as they are, and so they are read, too."""
    for fan in FANS:
        for path in sorted((hub.layout.root / "cache" / fan).glob("*")):
            if (size := found.sizes.get(path.name)) is None:
                continue
            wrong = await asyncio.to_thread(file_trouble, path, path.name, size)
            if wrong and path.exists():
                found.cached[path.name] = wrong
            found.bytes_read += size
