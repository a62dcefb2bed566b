"""The hashes of Xet: of chunks, of the trees above them, of files, and how they are spelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blake3 import blake3

HASH_BYTES = 32
ZERO = bytes(HASH_BYTES)

CHUNK_KEY = bytes.fromhex("6697f5775b9550de3135cbaca597181c9de421109beb2b58b4d0b04b93adf229")
NODE_KEY = bytes.fromhex("017ec5c7a5472996fd946666b48a02e65ddd536f37c76dd2f86352e64a53713f")
FILE_KEY = ZERO

FEWEST, MOST = 3, 9
"""Children of one node of the tree; what is left at the end may be fewer."""
BRANCHING = 4
DEDUP_EVERY = 1024
"""One chunk in so many is answered by the global deduplication: that whose hash is divisible by it."""

Node = tuple[bytes, int]
"""A hash and the bytes below it."""


def chunk_hash(data: bytes | memoryview) -> bytes:
    """The leaf hash of one uncompressed chunk."""
    return blake3(data, key=CHUNK_KEY).digest()


def root_hash(nodes: Iterable[Node]) -> bytes:
    """The hash of the tree over chunks, which is also the name of a xorb; all zeros for none."""
    level = list(nodes)
    if not level:
        return ZERO
    while len(level) > 1:
        level = [_parent(group) for group in _groups(level)]
    return level[0][0]


def file_hash(nodes: Iterable[Node]) -> bytes:
    """The name of a file made of these chunks."""
    root = root_hash(nodes)
    return root if root == ZERO else blake3(root, key=FILE_KEY).digest()


def is_asked_for(chunk: bytes) -> bool:
    """Whether clients ask the hub for a chunk of this hash."""
    return _tail(chunk) % DEDUP_EVERY == 0


def spelled(hash: bytes) -> str:
    """A hash as it stands in URLs and JSON: each word of eight bytes reversed, then hexadecimal."""
    return _words_reversed(hash).hex()


def unspelled(text: str) -> bytes:
    """The hash that was spelled; ValueError when it is none."""
    if len(text) != 2 * HASH_BYTES:
        raise ValueError(f"a hash has {2 * HASH_BYTES} hexadecimal digits, this has {len(text)}")
    return _words_reversed(bytes.fromhex(text))


def _words_reversed(hash: bytes) -> bytes:
    return b"".join(hash[at : at + 8][::-1] for at in range(0, HASH_BYTES, 8))


def _tail(hash: bytes) -> int:
    return int.from_bytes(hash[-8:], "little")


def _groups(nodes: Sequence[Node]) -> Iterable[Sequence[Node]]:
    start = 0
    while start < len(nodes):
        end = min(start + MOST, len(nodes))
        for place in range(start + FEWEST - 1, end):
            if _tail(nodes[place][0]) % BRANCHING == 0:
                end = place + 1
                break
        yield nodes[start:end]
        start = end


def _parent(children: Sequence[Node]) -> Node:
    text = "".join(f"{spelled(hash)} : {size}\n" for hash, size in children)
    return blake3(text.encode("ascii"), key=NODE_KEY).digest(), sum(size for _, size in children)
