"""What is stored and who may rely on it: blobs, xorbs, files of Xet, and the repositories that hold them.

Content is shared between repositories; a hash alone opens nothing. A repository holds a blob or a xorb once somebody
sent its bytes to it, or could read them in another repository.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.access.caller import Caller
from hfbench.registry.access.rules import openable
from hfbench.registry.database.rows import add_missing, add_or_renew, pairs, portions
from hfbench.registry.database.schema import (
    blobs,
    inline_blobs,
    repo_blobs,
    repo_xorbs,
    repos,
    xet_file_xorbs,
    xet_files,
    xorb_chunks,
    xorbs,
)

INLINE, FILE, XET, LOST = "inline", "file", "xet", "lost"
RENEWED_EVERY = 600.0
"""Seconds after which the use of a xorb is noted again."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Content by its SHA-256: where it lies is `inline` in the database, a `file`, or xorbs (`xet`).

    Of a `lost` one only the name is left, until somebody sends its bytes again.
    """

    sha256: str
    size: int
    place: str


@dataclass(frozen=True, slots=True)
class XetFile:
    """A file as stretches of xorbs, packed."""

    id: str
    sha256: str
    size: int
    terms: bytes


async def find_blob(connection: AsyncConnection, sha256: str) -> Blob | None:
    """The blob of that hash."""
    row = (
        await connection.execute(select(blobs.c.sha256, blobs.c.size, blobs.c.place).where(blobs.c.sha256 == sha256))
    ).first()
    return Blob(*row) if row else None


async def lost_among(connection: AsyncConnection, hashes: Collection[str]) -> set[str]:
    """Those of the blobs whose bytes are lost: clients are asked to send them again."""
    query = select(blobs.c.sha256).where(blobs.c.place == LOST)
    return {
        name for some in portions(hashes) for (name,) in await connection.execute(query.where(blobs.c.sha256.in_(some)))
    }


async def held_blobs(connection: AsyncConnection, repo: int, caller: Caller, hashes: Collection[str]) -> dict[str, int]:
    """Sizes of those of the blobs that this repository holds, or that the caller can open in another."""
    reachable = (repos.c.id == repo) | openable(caller)
    found: dict[str, int] = {}
    for some in portions(hashes):
        query = (
            select(blobs.c.sha256, blobs.c.size)
            .join(repo_blobs, repo_blobs.c.sha256 == blobs.c.sha256)
            .join(repos, repos.c.id == repo_blobs.c.repo_id)
            .where(blobs.c.sha256.in_(some), blobs.c.place != LOST, reachable)
            .distinct()
        )
        found.update(await pairs(connection, query))
    return found


async def hold_blobs(connection: AsyncConnection, repo: int, hashes: Iterable[str]) -> None:
    """Note that a repository holds these blobs, from now on: nothing held is swept within the grace period."""
    now = time.time()
    rows = [{"repo_id": repo, "sha256": sha256, "created": now} for sha256 in sorted(set(hashes))]
    await add_or_renew(connection, repo_blobs, rows, ["created"])


async def add_blob(connection: AsyncConnection, blob: Blob) -> None:
    """Note a blob whose bytes are kept; where it is known, what is known stays, unless it was lost."""
    await _add_blobs(connection, [blob])


async def add_inline(connection: AsyncConnection, contents: dict[str, bytes]) -> None:
    """Keep small blobs in the database itself."""
    rows = [{"sha256": sha256, "content": content} for sha256, content in sorted(contents.items())]
    await add_missing(connection, inline_blobs, rows)
    await _add_blobs(connection, [Blob(sha256, len(content), INLINE) for sha256, content in sorted(contents.items())])


async def inline_content(connection: AsyncConnection, sha256: str) -> bytes | None:
    """The bytes of a small blob."""
    query = select(inline_blobs.c.content).where(inline_blobs.c.sha256 == sha256)
    return (await connection.execute(query)).scalar()


async def add_xorb(connection: AsyncConnection, name: str, size: int, chunks: bytes, asked_for: Iterable[str]) -> None:
    """Note a xorb with its packed index as it lies on the disk, and the chunks by which others find it."""
    row = {"id": name, "size": size, "chunks": chunks, "created": time.time()}
    await add_or_renew(connection, xorbs, [row], ["size", "chunks", "created"])
    await add_missing(connection, xorb_chunks, [{"chunk": chunk, "xorb": name} for chunk in sorted(set(asked_for))])


async def note_asked_for(connection: AsyncConnection, chunks: Iterable[tuple[str, str]]) -> None:
    """Note further chunks by which others find a xorb: pairs of chunk and xorb."""
    await add_missing(connection, xorb_chunks, [{"chunk": chunk, "xorb": xorb} for chunk, xorb in sorted(set(chunks))])


async def hold_xorbs(connection: AsyncConnection, repo: int, names: Iterable[str]) -> None:
    """Note that a repository holds these xorbs."""
    now = time.time()
    rows = [{"repo_id": repo, "xorb": name, "created": now} for name in sorted(set(names))]
    await add_or_renew(connection, repo_xorbs, rows, ["created"])


async def stale_xorbs(connection: AsyncConnection, names: Collection[str]) -> list[str]:
    """Those of the xorbs whose use was not noted for some minutes."""
    before = time.time() - RENEWED_EVERY
    query = select(xorbs.c.id).where(xorbs.c.created < before)
    return [name for some in portions(names) for (name,) in await connection.execute(query.where(xorbs.c.id.in_(some)))]


async def renew_xorbs(connection: AsyncConnection, names: Collection[str]) -> None:
    """Note that a client was told of these xorbs: an upload may be about to name them, and they are not swept."""
    now = time.time()
    for some in portions(names):
        await connection.execute(update(xorbs).where(xorbs.c.id.in_(some)).values(created=now))
        await connection.execute(update(repo_xorbs).where(repo_xorbs.c.xorb.in_(some)).values(created=now))


async def held_xorbs(
    connection: AsyncConnection, repo: int, caller: Caller, names: Collection[str]
) -> dict[str, bytes]:
    """Packed indexes of those of the xorbs that this repository holds, or that the caller can open in another."""
    found: dict[str, bytes] = {}
    for some in portions(names):
        query = select(xorbs.c.id, xorbs.c.chunks).where(xorbs.c.id.in_(some), _may_use(repo, caller))
        found.update(await pairs(connection, query))
    return found


async def holds_all_xorbs(connection: AsyncConnection, repo: int, caller: Caller, names: Collection[str]) -> bool:
    """Whether this repository holds each of the xorbs, or the caller can open it in another."""
    found = 0
    for some in portions(names):
        query = select(func.count()).select_from(xorbs).where(xorbs.c.id.in_(some), _may_use(repo, caller))
        found += (await connection.execute(query)).scalar_one()
    return found == len(set(names))


def _may_use(repo: int, caller: Caller) -> ColumnElement[bool]:
    """Whether a xorb is held by the repository, or by one that the caller can open."""
    return (
        select(repo_xorbs.c.xorb)
        .join(repos, repos.c.id == repo_xorbs.c.repo_id)
        .where(repo_xorbs.c.xorb == xorbs.c.id, (repos.c.id == repo) | openable(caller))
        .exists()
    )


async def xorb_indexes(connection: AsyncConnection, names: Collection[str]) -> dict[str, bytes]:
    """Packed indexes of xorbs, whoever holds them: for files whose repository was asked already."""
    found: dict[str, bytes] = {}
    for some in portions(names):
        query = select(xorbs.c.id, xorbs.c.chunks).where(xorbs.c.id.in_(some))
        found.update(await pairs(connection, query))
    return found


async def xorbs_beside(
    connection: AsyncConnection, repo: int, caller: Caller, xorb: str, most: int
) -> dict[str, bytes]:
    """Packed indexes of up to `most` further xorbs of the files that this one is in, as far as the caller may know."""
    file = xet_file_xorbs.alias()
    query = (
        select(xet_file_xorbs.c.xorb)
        .join(file, file.c.file == xet_file_xorbs.c.file)
        .where(file.c.xorb == xorb, xet_file_xorbs.c.xorb != xorb)
        .distinct()
        .limit(most)
    )
    return await held_xorbs(connection, repo, caller, [name for (name,) in await connection.execute(query)])


async def xorb_with_chunk(
    connection: AsyncConnection, repo: int, caller: Caller, chunk: str
) -> tuple[str, bytes] | None:
    """A xorb with this chunk that the repository holds or the caller can open, with its packed index."""
    reachable = (repos.c.id == repo) | openable(caller)
    query = (
        select(xorbs.c.id, xorbs.c.chunks)
        .join(xorb_chunks, xorb_chunks.c.xorb == xorbs.c.id)
        .join(repo_xorbs, repo_xorbs.c.xorb == xorbs.c.id)
        .join(repos, repos.c.id == repo_xorbs.c.repo_id)
        .where(xorb_chunks.c.chunk == chunk, reachable)
        .limit(1)
    )
    row = (await connection.execute(query)).first()
    return (row[0], row[1]) if row else None


async def find_xet_file(connection: AsyncConnection, id: str) -> XetFile | None:
    """The file of that Xet hash."""
    return await _xet_file(connection, xet_files.c.id == id)


async def xet_file_of(connection: AsyncConnection, sha256: str) -> XetFile | None:
    """The stretches that make the blob of that hash."""
    return await _xet_file(connection, xet_files.c.sha256 == sha256)


async def _xet_file(connection: AsyncConnection, clause: object) -> XetFile | None:
    columns = (xet_files.c.id, xet_files.c.sha256, xet_files.c.size, xet_files.c.terms)
    row = (await connection.execute(select(*columns).where(clause).limit(1))).first()  # type: ignore[arg-type]
    return XetFile(*row) if row else None


async def add_xet_file(connection: AsyncConnection, file: XetFile, names: Collection[str]) -> None:
    """Note a file whose SHA-256 was compared with its content, and the xorbs it is made of."""
    row = {"id": file.id, "sha256": file.sha256, "size": file.size, "terms": file.terms, "created": time.time()}
    await add_missing(connection, xet_files, [row])
    await add_missing(connection, xet_file_xorbs, [{"file": file.id, "xorb": name} for name in sorted(names)])


async def forget_xorbs(connection: AsyncConnection, before: float) -> list[str]:
    """Forget xorbs that came before a time; their names. Only where files are kept whole."""
    query = delete(xorbs).where(xorbs.c.created < before).returning(xorbs.c.id)
    gone = [name for (name,) in await connection.execute(query)]
    for some in portions(gone):
        await connection.execute(delete(xorb_chunks).where(xorb_chunks.c.xorb.in_(some)))
        await connection.execute(delete(repo_xorbs).where(repo_xorbs.c.xorb.in_(some)))
    return gone


async def repo_bytes(connection: AsyncConnection, repo: int) -> int:
    """Bytes of all blobs a repository holds, in all of its revisions."""
    query = select(func.coalesce(func.sum(blobs.c.size), 0)).join(repo_blobs, repo_blobs.c.sha256 == blobs.c.sha256)
    return int((await connection.execute(query.where(repo_blobs.c.repo_id == repo))).scalar_one())


async def _add_blobs(connection: AsyncConnection, found: Iterable[Blob]) -> None:
    now = time.time()
    rows = [{"sha256": blob.sha256, "size": blob.size, "place": blob.place, "created": now} for blob in found]
    await add_or_renew(connection, blobs, rows, ["created"], {"place": LOST})
