"""Uploads of whole files: streamed into a draft, hashed on the way, kept only when the hash is what was promised."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from hfbench.registry.errors import BadRequest, Conflict, Refusal
from hfbench.registry.fault_points import passed
from hfbench.registry.storage.drafts import FULL, READ_ONLY, Draft, gathered, sync_folder, with_room
from hfbench.registry.storage.layout import Layout
from hfbench.registry.storage.threads import in_a_thread


async def announced(body: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """The body; BadRequest as soon as it has more than `size` bytes, or when it ends with fewer."""
    total = 0
    async for piece in body:
        total += len(piece)
        if total > size:
            raise BadRequest(f"The body has more than the {size:,} bytes that were announced.")
        yield piece
    if total < size:
        raise BadRequest(f"The body ends after {total:,} of {size:,} bytes.")


async def receive_blob(layout: Layout, body: AsyncIterator[bytes], sha256: str, size: int, *, keep: bool) -> None:
    """Take a body that must have this hash and size, and keep it unless it is known; BadRequest, and nothing kept,
    when it is another."""
    digest = hashlib.sha256()
    with await in_a_thread(Draft, layout) as draft:

        def take(pieces: Sequence[bytes]) -> None:
            for piece in pieces:
                digest.update(piece)
            draft.write_all(pieces)

        async for pieces in gathered(announced(body, size)):
            await in_a_thread(take, pieces)
        if digest.hexdigest() != sha256:
            raise BadRequest("The content does not have the SHA-256 that was announced.")
        if keep:
            await in_a_thread(draft.keep, layout.blob(sha256))


async def receive_part(layout: Layout, path: Path, body: AsyncIterator[bytes], start: int, size: int) -> None:
    """Write one part into its place of a file that arrives in parts. Where the disk is full, no part of it stays."""
    handle = await in_a_thread(os.open, path, os.O_WRONLY | os.O_CREAT, 0o600)
    at = start
    try:
        _hold(handle, path, fcntl.LOCK_SH)
        async for pieces in gathered(announced(body, size)):
            at = await in_a_thread(_write_at, layout, handle, pieces, at)
    except OSError as error:
        if error.errno in FULL:
            path.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def _hold(handle: int, path: Path, how: int) -> None:
    """Lock an upload: parts are written by several at a time, and nobody writes once its hash is being taken.

    Whoever opened it before it was kept holds a blob, and is refused too.
    """
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
        same = path.stat().st_ino == os.fstat(handle).st_ino
    except (BlockingIOError, FileNotFoundError):
        same = False
    if not same:
        raise Conflict("Parts of this upload are still arriving, or it is complete.")


def complete_parts(layout: Layout, path: Path, sha256: str, size: int) -> bool:
    """Keep a file that arrived in parts; BadRequest, and nothing kept, when a part is missing or it is another file.

    False when it was kept before: the client asks again, because the reply was lost.
    """
    try:
        with path.open("rb") as file:
            _hold(file.fileno(), path, fcntl.LOCK_EX)
            digest = hashlib.file_digest(file, "sha256")
            found = os.fstat(file.fileno()).st_size
            os.fchmod(file.fileno(), READ_ONLY)
            os.fsync(file.fileno())
            if found != size or digest.hexdigest() != sha256:
                path.unlink()
                raise BadRequest("The parts do not make the file that was announced: upload it again.")
            passed("rename")
            os.rename(path, layout.blob(sha256))
            passed("renamed")
    except FileNotFoundError as error:
        if layout.blob(sha256).exists():
            return False
        raise BadRequest("No part of this upload has arrived.") from error
    sync_folder(layout.blob(sha256).parent)
    passed("synced")
    return True


def require_kept(path: Path, size: int) -> None:
    """Refusal unless the file lies there: asked within the transaction that names it, it is not swept any more."""
    try:
        kept = path.stat().st_size == size
    except FileNotFoundError:
        kept = False
    if not kept:
        raise Refusal(503, "The upload met a sweep: send it again.", headers={"Retry-After": "1"})


def _write_at(layout: Layout, handle: int, pieces: Sequence[bytes], at: int) -> int:
    """Write the pieces from a byte on; the byte behind them."""
    for piece in pieces:
        view = memoryview(piece)
        while view:
            done = with_room(layout, len(view), os.pwrite, handle, view, at)
            view, at = view[done:], at + done
    return at
