"""Stretches of a file, against a set of its bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hfbench.hub.pulling.partial import ranges_of
from hfbench.hub.pulling.ranges import Ranges

SIZE = 40
stretches = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=12)


@given(stretches, st.integers(1, SIZE))
def test_stretches_and_gaps_are_the_bytes_that_were_added_and_those_that_were_not(
    added: list[tuple[int, int]], longest: int
) -> None:
    found, bytes_ = Ranges(), set[int]()
    for start, end in added:
        found.add(start, end)
        bytes_ |= set(range(start, end))
    there = [byte for start, end in found for byte in range(start, end)]
    assert there == sorted(bytes_)
    assert found.total == len(bytes_)
    assert found.prefix == next(byte for byte in range(SIZE + 1) if byte not in bytes_)
    gaps = list(found.gaps(SIZE, longest))
    assert [byte for start, end in gaps for byte in range(start, end)] == sorted(set(range(SIZE)) - bytes_)
    assert all(0 < end - start <= longest for start, end in gaps)
    assert all(before[1] < after[0] for before, after in zip(list(found), list(found)[1:], strict=False))


@given(stretches, st.integers(0, 200))
def test_a_journal_that_was_cut_anywhere_never_tells_of_a_byte_that_is_not_there(
    added: list[tuple[int, int]], cut: int
) -> None:
    lines = [f"{start} {end}" for start, end in added if start < end]
    truth = {byte for start, end in added for byte in range(start, end)}
    told = ranges_of("\n".join(lines)[:cut].splitlines(), SIZE)
    assert {byte for start, end in told for byte in range(start, end)} <= truth


@given(st.lists(st.text(max_size=20), max_size=20))
def test_no_line_leads_beyond_the_file(lines: list[str]) -> None:
    assert all(0 <= start < end <= SIZE for start, end in ranges_of(lines, SIZE))
