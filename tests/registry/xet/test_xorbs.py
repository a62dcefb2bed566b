"""Xorbs: any contents come back, and whatever was damaged is refused."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.registry.xet.hashes import ZERO, file_hash
from hfbench.registry.xet.rebuild import TermError, check_terms, hash_of_terms, rebuilt
from hfbench.registry.xet.shards import ShardError, Term, known_chunks, pack_terms, read_shard, unpack_terms
from hfbench.registry.xet.xorbs import (
    GROUPED_LZ4,
    XorbError,
    XorbIndex,
    pack_xorb,
    read_range,
    ungrouped,
    unpacked,
    verify_xorb,
)

CONTENTS = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=40)


@given(CONTENTS)
def test_a_xorb_gives_back_its_chunks(contents: list[bytes]) -> None:
    body, name = pack_xorb(contents)
    index = verify_xorb(BytesIO(body), len(body), name)
    assert XorbIndex.unpack(index.pack()) == index
    assert list(read_range(BytesIO(body), index, 0, len(contents))) == contents
    assert list(read_range(BytesIO(body), index, len(contents) - 1, len(contents))) == contents[-1:]


@given(CONTENTS, st.data())
def test_a_xorb_with_another_byte_is_refused(contents: list[bytes], data: st.DataObject) -> None:
    body, name = pack_xorb(contents)
    place = data.draw(st.integers(0, len(body) - 1))
    other = bytearray(body)
    other[place] ^= data.draw(st.integers(1, 255))
    try:
        index = verify_xorb(BytesIO(bytes(other)), len(other), name)
    except XorbError:
        return
    assert list(read_range(BytesIO(bytes(other)), index, 0, len(contents))) == contents  # lz4 has bits of no meaning


@given(st.binary(max_size=200))
def test_bytes_that_are_no_xorb_are_refused(body: bytes) -> None:
    with pytest.raises(XorbError):
        verify_xorb(BytesIO(body), len(body), ZERO)


def test_a_small_chunk_cannot_ask_for_much_memory() -> None:
    bomb = lz4.frame.compress(bytes(64 << 20))
    with pytest.raises(XorbError, match="1,000 bytes unpacks to 1,001"):
        unpacked(bomb, 1, 1000, 0)


@given(st.binary(min_size=1, max_size=100))
def test_grouped_bytes_come_back_in_their_order(data: bytes) -> None:
    grouped = b"".join(data[place::4] for place in range(4))
    assert ungrouped(grouped) == data
    assert unpacked(lz4.frame.compress(grouped), GROUPED_LZ4, len(data), 0) == data


@given(CONTENTS, st.data())
def test_any_stretch_of_a_file_is_rebuilt(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], data: st.DataObject
) -> None:
    body, name = pack_xorb(contents)
    path = tmp_path_factory.mktemp("xorb", numbered=True) / "xorb"
    path.write_bytes(body)
    index = verify_xorb(BytesIO(body), len(body), name)
    whole = b"".join(contents)
    cut = data.draw(st.integers(1, len(contents)))
    parts = [(0, cut), (cut, len(contents))] if cut < len(contents) else [(0, cut)]
    terms = tuple(Term(name, sum(map(len, contents[a:b])), a, b) for a, b in parts)
    check_terms(terms, {name: index})
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    assert b"".join(rebuilt(terms, {name: index}, lambda _: Path(path), start=start, end=end)) == whole[start:end]
    assert hash_of_terms(terms, {name: index}) == file_hash((c.hash, c.length) for c in index.chunks)
    assert unpack_terms(pack_terms(terms)) == terms


def test_a_stretch_that_claims_other_bytes_is_refused() -> None:
    body, name = pack_xorb([b"one", b"three"])
    index = verify_xorb(BytesIO(body), len(body), name)
    for term in (Term(name, 9, 0, 2), Term(name, 8, 0, 3)):
        with pytest.raises(TermError):
            check_terms((term,), {name: index})


def test_the_answer_about_known_chunks_is_a_shard_without_files() -> None:
    body, name = pack_xorb([b"one", b"three"])
    answer = known_chunks({name: verify_xorb(BytesIO(body), len(body), name)})
    assert read_shard(answer) == ()
    assert int.from_bytes(answer[-8:], "little") == len(answer) - 200, "the footer says where it begins"


@given(st.binary(max_size=400))
def test_bytes_that_are_no_shard_are_refused(body: bytes) -> None:
    with pytest.raises(ShardError):
        read_shard(body)


@given(st.integers(0, 191), st.integers(1, 255))
def test_a_damaged_shard_is_read_or_refused_and_never_fails(place: int, flip: int) -> None:
    body, name = pack_xorb([b"one", b"three"])
    answer = bytearray(known_chunks({name: verify_xorb(BytesIO(body), len(body), name)}))
    answer[place] ^= flip
    with suppress(ShardError):
        read_shard(bytes(answer))
