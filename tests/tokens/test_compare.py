"""Two tokenizers on one text: counts and where they first part."""

from __future__ import annotations

from array import array

import pytest

from hfbench.tokens.compare import compare, first_difference
from hfbench.tokens.encoded import PLAIN, SPECIAL, Encoded

TEXT = "hello world"


def encoded(*tokens: tuple[int, int, int], around: int = 0) -> Encoded:
    """Tokens as (id, begin, end), with so many special ones around them."""
    head = [(900 + number, 0, 0) for number in range(around)]
    tail = [(950 + number, len(TEXT), len(TEXT)) for number in range(around)]
    rows = [*head, *tokens, *tail]
    kinds = bytes([SPECIAL] * around + [PLAIN] * len(tokens) + [SPECIAL] * around)
    columns = (array("I", column) for column in zip(*rows, strict=True)) if rows else (array("I") for _ in range(3))
    ids, begins, ends = columns
    pieces = {number: f"p{number}" for number, _, _ in rows}
    return Encoded(
        raw=TEXT.encode(), characters=len(TEXT), ids=ids, begins=begins, ends=ends, kinds=kinds, pieces=pieces
    )


A = encoded((1, 0, 5), (2, 5, 11))


def test_the_same_tokens_have_no_difference_whatever_stands_around_them() -> None:
    assert first_difference(A, A) is None
    assert first_difference(A, encoded((1, 0, 5), (2, 5, 11), around=2)) is None
    assert compare(A, encoded((1, 0, 5), (2, 5, 11), around=1), model="b").ratio == 2.0


def test_the_first_other_cut_is_told_with_its_byte() -> None:
    found = first_difference(A, encoded((7, 0, 5), (8, 5, 6), (9, 6, 11)))
    assert found
    assert (found.kind, found.index, found.byte) == ("cut", 1, 5)
    assert found.a
    assert found.b
    assert (found.a.text, found.b.text) == (" world", " ")


def test_where_all_cuts_agree_the_first_other_id_is_told() -> None:
    found = first_difference(encoded((1, 0, 5), (2, 5, 11), around=1), encoded((1, 0, 5), (3, 5, 11)))
    assert found
    assert (found.kind, found.index, found.byte) == ("id", 2, 5)


def test_a_side_that_is_at_its_end_has_no_token() -> None:
    found = first_difference(A, encoded((1, 0, 5)))
    assert found
    assert (found.kind, found.index, found.b) == ("cut", 1, None)
    assert found.a
    assert found.a.id == 2
    assert first_difference(encoded(), encoded()) is None


@pytest.mark.parametrize("place", [0, 1, 777, 65_536, 99_999])
def test_one_other_token_among_many_is_found(place: int) -> None:
    rows = [(number, number, number + 1) for number in range(100_000)]
    other = list(rows)
    other[place] = (123_456, place, place + 1)
    raw = b"x" * len(rows)

    def columns(rows: list[tuple[int, int, int]]) -> Encoded:
        ids, begins, ends = (array("I", column) for column in zip(*rows, strict=True))
        kinds = bytes(len(rows))
        return Encoded(raw=raw, characters=len(raw), ids=ids, begins=begins, ends=ends, kinds=kinds, pieces={})

    found = first_difference(columns(rows), columns(other))
    assert found
    assert (found.kind, found.index) == ("id", place)


def test_no_tokens_have_no_ratio() -> None:
    assert compare(encoded(), A, model="b").ratio is None
