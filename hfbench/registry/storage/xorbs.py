"""Xorbs taken in: streamed into a draft, verified chunk by chunk, kept under the name of their content."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from hfbench.registry.errors import TooLarge
from hfbench.registry.storage.drafts import Draft
from hfbench.registry.storage.threads import in_a_thread
from hfbench.registry.xet.hashes import spelled
from hfbench.registry.xet.xorbs import XorbIndex, verify_xorb
from hfbench.units import MIB

if TYPE_CHECKING:
    from hfbench.registry.hub import Hub

LARGEST = 72 * MIB
"""Bytes of a body: clients send at most 64 MiB of chunks."""
GATHERED = 4 * MIB


async def receive_xorb(hub: Hub, body: AsyncIterator[bytes], name: bytes, *, keep: bool) -> tuple[XorbIndex, int]:
    """The index and the bytes on disk of a body that is this xorb; XorbError, and nothing kept, when it is not."""
    with await in_a_thread(Draft, hub.layout.drafts) as draft:
        waiting = bytearray()
        async for piece in body:
            waiting += piece
            if draft.size + len(waiting) > LARGEST:
                raise TooLarge(f"A xorb has at most {LARGEST // MIB} MiB.")
            if len(waiting) >= GATHERED:
                await in_a_thread(draft.write, waiting)
                waiting = bytearray()

        def finish() -> XorbIndex:
            draft.write(waiting)
            index = verify_xorb(draft.file, draft.size, name)
            if keep:
                draft.keep(hub.layout.xorb(spelled(name)))
            return index

        async with hub.verifying:
            index = await in_a_thread(finish)
        return index, draft.size
