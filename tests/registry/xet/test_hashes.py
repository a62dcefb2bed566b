"""Hashes of Xet: known answers, and what must hold of any."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hfbench.registry.xet.hashes import MOST, ZERO, chunk_hash, file_hash, root_hash, spelled, unspelled

HASHES = st.binary(min_size=32, max_size=32)


@given(HASHES)
def test_a_spelled_hash_is_read_back(hash: bytes) -> None:
    assert unspelled(spelled(hash)) == hash


def test_words_are_spelled_from_their_last_byte() -> None:
    assert spelled(bytes(range(32)))[:16] == "0706050403020100"


def test_no_chunk_has_the_hash_of_zeros() -> None:
    assert root_hash([]) == file_hash([]) == ZERO


def test_one_chunk_is_its_own_tree_and_not_its_own_file() -> None:
    leaf = chunk_hash(b"one")
    assert root_hash([(leaf, 3)]) == leaf != file_hash([(leaf, 3)])


@given(st.lists(st.tuples(HASHES, st.integers(1, 1 << 20)), min_size=2, max_size=200))
def test_the_tree_tells_order_and_sizes(nodes: list[tuple[bytes, int]]) -> None:
    changed = [(nodes[0][0], nodes[0][1] + 1), *nodes[1:]]
    assert root_hash(nodes) != root_hash(changed)
    if nodes != nodes[::-1] and len(nodes) <= MOST:
        assert root_hash(nodes) != root_hash(nodes[::-1])
