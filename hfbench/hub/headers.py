"""The header of a file of weights on a hub, by two range requests at most for safetensors, a few for GGUF."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hfbench.convert.gguf_file import GgufError, read_gguf
from hfbench.hub.facts import HubFile
from hfbench.models.safetensors import MAX_HEADER, PREFIX

FIRST = 64 << 10
"""Bytes asked for before the length of the header is known: most headers are shorter."""
MOST_GGUF = 64 << 20
"""Bytes of a GGUF header at most: vocabularies lie in it."""
MARGIN = 4096
"""Bytes before the end of what is here in which a fault may come from the cut."""

Fetch = Callable[[int, int], bytes]
"""The bytes of the file from a first one up to another, exclusive."""


def header_of(file: HubFile, fetch: Fetch) -> bytes:
    """The beginning of a file up to the end of its header.

    A file that claims a header it cannot have comes as far as it was looked at: reading it says what is wrong.
    """
    begin = fetch(0, min(FIRST, file.size))
    if file.path.lower().endswith(".gguf"):
        return _gguf(file, begin, fetch)
    length = int.from_bytes(begin[:PREFIX], "little")
    if length > min(MAX_HEADER, file.size - PREFIX):
        return begin
    end = PREFIX + length
    return begin[:end] if end <= len(begin) else begin + fetch(len(begin), end)


def _gguf(file: HubFile, begin: bytes, fetch: Fetch) -> bytes:
    """Four times as much each time, until the header is whole. Its length is told nowhere."""
    while not _whole(begin, file.size) and len(begin) < min(MOST_GGUF, file.size):
        begin += fetch(len(begin), min(4 * len(begin), MOST_GGUF, file.size))
    return begin


def _whole(begin: bytes, size: int) -> bool:
    """Whether no more of a GGUF file is needed: its header is read, or is wrong before the end of what is here."""
    with tempfile.NamedTemporaryFile() as held:
        held.write(begin)
        held.truncate(size)  # sparse: the reader sees where tensors would lie
        held.flush()
        try:
            return read_gguf(Path(held.name)) is not None
        except GgufError as error:
            return error.at + MARGIN < len(begin)
