"""Xorbs taken in: streamed into a draft, verified chunk by chunk, kept under the name of their content."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.registry.errors import TooLarge
from hfbench.registry.storage.drafts import Draft, gathered
from hfbench.registry.storage.threads import in_a_thread
from hfbench.registry.xet.hashes import spelled
from hfbench.registry.xet.xorbs import XorbError, XorbIndex, verify_xorb
from hfbench.units import MIB

if TYPE_CHECKING:
    from hfbench.registry.hub import Hub

LARGEST = 72 * MIB
"""Bytes of a body: clients send at most 64 MiB of chunks."""


async def receive_xorb(
    hub: Hub, body: AsyncIterator[bytes], name: bytes, known: bytes | None
) -> tuple[XorbIndex, int] | None:
    """The index and the bytes on disk of a body that is this xorb; XorbError, and nothing kept, when it is not.

    `known` is the packed index of the xorb that is there. None, and nothing kept, when that one is whole but packed
    otherwise: files are read by its index.
    """
    with await in_a_thread(Draft, hub.layout) as draft:
        async for pieces in gathered(body):
            if draft.size + sum(map(len, pieces)) > LARGEST:
                raise TooLarge(f"A xorb has at most {LARGEST // MIB} MiB.")
            await in_a_thread(draft.write_all, pieces)

        def finish() -> XorbIndex | None:
            index = verify_xorb(draft.file, draft.size, name)
            path = hub.layout.xorb(spelled(name))
            if known is not None and index.pack() != known and is_whole(path, name):
                return None
            draft.keep(path)
            return index

        async with hub.verifying:
            index = await in_a_thread(finish)
        return None if index is None else (index, draft.size)


def is_whole(path: Path, name: bytes) -> bool:
    """Whether the xorb lies there undamaged: every chunk is unpacked and hashed. Blocks."""
    try:
        with path.open("rb") as file:
            verify_xorb(file, os.fstat(file.fileno()).st_size, name)
    except (OSError, XorbError):
        return False
    return True
