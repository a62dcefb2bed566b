"""Two tokenizers on one text: how many tokens each makes of it, and where they first part."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Literal

from hfbench.tokens.encoded import Encoded, Token


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first place at which two tokenizers part: they cut elsewhere, or cut alike and give other ids.

    `index` counts tokens of the first one. A side is None where its tokens are at an end.
    """

    kind: Literal["cut", "id"]
    index: int
    byte: int
    a: Token | None
    b: Token | None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What the second tokenizer makes of the same text. `ratio` is its count by the first one's, None without any."""

    model: str
    source: str
    count: int
    ratio: float | None
    same: bool
    """True when both give the same ids for the text; tokens around it, of a post-processor, are not looked at."""
    first_difference: Difference | None


def compare(a: Encoded, b: Encoded, *, model: str, source: str = "") -> Comparison:
    """Compare the tokens of `b`, which `model` made of the text, with those of `a`."""
    difference = first_difference(a, b)
    return Comparison(
        model=model,
        source=source,
        count=len(b),
        ratio=len(b) / len(a) if len(a) else None,
        same=difference is None,
        first_difference=difference,
    )


def first_difference(a: Encoded, b: Encoded) -> Difference | None:
    """The first token at which the cuts differ, else the first with another id, else None."""
    (skip_a, stop_a), (skip_b, stop_b) = _inner(a), _inner(b)
    common = min(stop_a - skip_a, stop_b - skip_b)

    def parting(*columns: tuple[array[int], array[int]]) -> int:
        return min(_mismatch(x[skip_a : skip_a + common], y[skip_b : skip_b + common]) for x, y in columns)

    cut = parting((a.begins, b.begins), (a.ends, b.ends))
    if cut < common or stop_a - skip_a != stop_b - skip_b:
        return _difference("cut", a, b, skip_a + cut, skip_b + cut, stop_a, stop_b)
    place = parting((a.ids, b.ids))
    return _difference("id", a, b, skip_a + place, skip_b + place, stop_a, stop_b) if place < common else None


def _difference(
    kind: Literal["cut", "id"], a: Encoded, b: Encoded, at_a: int, at_b: int, stop_a: int, stop_b: int
) -> Difference:
    left = a.token(at_a) if at_a < stop_a else None
    right = b.token(at_b) if at_b < stop_b else None
    byte = min(each.begin for each in (left, right) if each is not None)
    return Difference(kind=kind, index=at_a, byte=byte, a=left, b=right)


def _inner(encoded: Encoded) -> tuple[int, int]:
    """The rows without those at both ends that stand for nothing in the text."""
    first, after = 0, len(encoded)
    while first < after and encoded.begins[first] == encoded.ends[first]:
        first += 1
    while after > first and encoded.begins[after - 1] == encoded.ends[after - 1]:
        after -= 1
    return first, after


def _mismatch(a: array[int], b: array[int]) -> int:
    """The first place at which two columns of one length differ, else their length; compared in halves, in C."""
    low, high = 0, len(a)
    if a == b:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
