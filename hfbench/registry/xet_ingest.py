"""Files of a shard become blobs: their stretches are checked, their content is hashed once, and never again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.access.caller import Caller
from hfbench.registry.database.content import (
    FILE,
    LOST,
    XET,
    Blob,
    XetFile,
    add_blob,
    add_xet_file,
    find_blob,
    find_xet_file,
    held_xorbs,
    hold_blobs,
    hold_xorbs,
    holds_all_xorbs,
    note_asked_for,
)
from hfbench.registry.database.repos import Repo
from hfbench.registry.errors import BadRequest, Refusal, TooLarge
from hfbench.registry.hub import Hub
from hfbench.registry.names import SHA256
from hfbench.registry.quotas import require_kept_within, require_room_for_files
from hfbench.registry.storage.blobs import require_kept
from hfbench.registry.storage.cache import free_bytes, reserve
from hfbench.registry.storage.drafts import FULL
from hfbench.registry.storage.rebuilding import DamagedError, GivenUpError, Recipe
from hfbench.registry.storage.threads import in_a_stoppable_thread
from hfbench.registry.xet.hashes import spelled, unspelled
from hfbench.registry.xet.rebuild import Indexes, TermError, check_terms, hash_of_terms
from hfbench.registry.xet.shards import ShardFile, pack_terms
from hfbench.registry.xet.xorbs import XorbError, XorbIndex
from hfbench.units import GIB, show_bytes

FREE_OF_RATIO = 2 * GIB
"""Bytes of files that a shard may name whatever they are made of: some seconds of unpacking."""
MOST_UNPACKED_RATIO = 1000
"""Bytes of files to a byte of their xorbs: weights have one to two, and a file of zeros a few hundred."""
MOST_CHUNKS = 32_000_000
"""Chunks of all files of a shard, of which one has 64 KiB as clients cut them: about 2 TiB."""


async def take_files(hub: Hub, repo: Repo, caller: Caller, files: Sequence[ShardFile]) -> None:
    """Let the repository hold the files of a shard, all or none; BadRequest unless contents and hashes agree.

    Every xorb must have been sent for this repository, or be one that the caller can read: a hash opens nothing.
    """

    known = [await _is_known(hub, repo, caller, file) for file in files]
    fresh = [file for file, is_known in zip(files, known, strict=True) if not is_known]
    indexes_of = await _indexes(hub, repo, caller, fresh)
    await _require_sane(hub, repo, fresh, indexes_of)

    async def look(file: ShardFile, is_known: bool) -> Indexes:
        """None of a file that was compared before and is made of the same stretches: it cannot be different now."""
        if is_known:
            return {}
        async with hub.verifying:
            return await _look(hub, file, {term.xorb: indexes_of[term.xorb] for term in file.terms})

    tasks = [asyncio.create_task(look(*each)) for each in zip(files, known, strict=True)]
    try:
        found = await asyncio.gather(*tasks)
    finally:  # the first that is refused ends the others
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    async with hub.database.writing() as connection:
        for file, indexes in zip(files, found, strict=True):
            await _note(hub, connection, repo, file, indexes)
        await require_kept_within(connection, hub.settings, repo)


async def _require_sane(hub: Hub, repo: Repo, files: Sequence[ShardFile], indexes: Indexes) -> None:
    """Refused before anything is unpacked: files that fit nowhere, and much more content than the xorbs can stand for.

    The stretches of a shard of some kilobytes can name one chunk of zeros again and again, to any size.
    """
    wanted = sum({file.sha256: file.size for file in files}.values())
    chunks = sum(term.end - term.start for file in files for term in file.terms)
    sent = sum(index.packed_bytes for index in indexes.values())
    if chunks > MOST_CHUNKS or wanted > max(FREE_OF_RATIO, MOST_UNPACKED_RATIO * sent):
        raise TooLarge(
            f"The files of the shard would have {show_bytes(wanted)} in {chunks:,} chunks, made of {show_bytes(sent)}"
            " that were sent: send them by Git LFS (HF_HUB_DISABLE_XET=1), or in several commits."
        )
    async with hub.database.reading() as connection:
        await require_room_for_files(connection, hub.settings, repo, wanted)
    if not hub.keeps_xorbs and wanted > free_bytes(hub.layout) - reserve(hub.layout):
        raise Refusal(507, "The hub's disk is full: nothing of this request was kept.")


async def _look(hub: Hub, file: ShardFile, indexes: Indexes) -> Indexes:
    """The indexes of a file's xorbs, after its hashes were compared with its content, or with what is known of it."""
    if not SHA256.fullmatch(file.sha256):
        raise BadRequest("A file of the shard has no SHA-256.")

    def name(stop: Event) -> bytes:
        check_terms(file.terms, indexes)
        return hash_of_terms(file.terms, indexes, stop)

    try:
        found = await in_a_stoppable_thread(name)
    except TermError as error:
        raise BadRequest(f"A file of the shard cannot be made: {error}.") from error
    if found != file.hash:
        raise BadRequest("A file of the shard does not have the hash it is said to have.")
    async with hub.database.reading() as connection:
        known = await find_xet_file(connection, spelled(file.hash))
        blob = await find_blob(connection, file.sha256)
    if known is None or blob is None or blob.place == LOST:
        await _compare(hub, file, indexes, blob)
    elif known.sha256 != file.sha256:
        raise BadRequest("A file of the shard does not have the SHA-256 it is said to have.")
    return indexes


async def _is_known(hub: Hub, repo: Repo, caller: Caller, file: ShardFile) -> bool:
    """Whether just this was looked at before, of xorbs that the caller may use: their names are their content."""
    async with hub.database.reading() as connection:
        known = await find_xet_file(connection, spelled(file.hash))
        if known is None or (known.sha256, known.terms) != (file.sha256, pack_terms(file.terms)):
            return False
        blob = await find_blob(connection, file.sha256)
        if blob is None or blob.place == LOST:
            return False
        names = {spelled(term.xorb) for term in file.terms}
        return await holds_all_xorbs(connection, repo.id, caller, names)


async def _indexes(hub: Hub, repo: Repo, caller: Caller, files: Sequence[ShardFile]) -> Indexes:
    names = {spelled(term.xorb) for file in files for term in file.terms}
    async with hub.database.reading() as connection:
        held = await held_xorbs(connection, repo.id, caller, names)
    if absent := names - held.keys():
        raise BadRequest(f"{len(absent)} xorbs of the shard are not known here, or not any more: upload again.")
    return {unspelled(name): XorbIndex.unpack(packed) for name, packed in held.items()}


async def _compare(hub: Hub, file: ShardFile, indexes: Indexes, blob: Blob | None) -> None:
    """Rebuild the file, which hashes it, and keep what was rebuilt where it will be read."""
    recipe = Recipe(file.sha256, file.size, file.terms, indexes)
    keep_as = hub.layout.cached(file.sha256) if hub.keeps_xorbs else hub.layout.blob(file.sha256)
    lies_there = (blob is not None and blob.place == FILE) or keep_as.exists()
    try:
        if lies_there or (hub.keeps_xorbs and not hub.cache.admits(file.size)):
            await hub.rebuilder.check(recipe)
            return
        try:
            await hub.rebuilder.make(recipe, keep_as)
        except OSError as error:
            if error.errno not in FULL or not hub.keeps_xorbs:
                raise
            await hub.rebuilder.check(recipe)  # a copy in the cache is a convenience
    except GivenUpError:
        raise
    except (DamagedError, XorbError, FileNotFoundError) as error:
        raise BadRequest("A file of the shard does not have the SHA-256 it is said to have.") from error


async def _note(hub: Hub, connection: AsyncConnection, repo: Repo, file: ShardFile, indexes: Indexes) -> None:
    if not hub.keeps_xorbs:
        require_kept(hub.layout.blob(file.sha256), file.size)
    await add_blob(connection, Blob(file.sha256, file.size, XET if hub.keeps_xorbs else FILE))
    await hold_blobs(connection, repo.id, [file.sha256])
    names = {spelled(term.xorb) for term in file.terms}
    await hold_xorbs(connection, repo.id, names)
    if not hub.keeps_xorbs:
        return
    known = XetFile(spelled(file.hash), file.sha256, file.size, pack_terms(file.terms))
    await add_xet_file(connection, known, names)
    if file.terms and indexes:  # clients also ask for the chunk that begins a file
        first = file.terms[0]
        chunk = indexes[first.xorb].chunks[first.start].hash
        await note_asked_for(connection, [(spelled(chunk), spelled(first.xorb))])
