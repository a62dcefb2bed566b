"""Where tokens lie in the bytes of a text, told from characters and pieces."""

from __future__ import annotations

import pytest

from hfbench.tokens.offsets import byte_extents

Case = tuple[str, list[tuple[int, int]], list[str], list[tuple[int, int]]]

CASES: dict[str, Case] = {
    "plain": ("ab c", [(0, 2), (2, 4)], ["ab", "Ġc"], [(0, 2), (2, 4)]),
    "two bytes a character": ("éa", [(0, 1), (1, 2)], ["Ã©", "a"], [(0, 2), (2, 3)]),
    "a character cut in two": ("é", [(0, 1), (0, 1)], ["Ã", "©"], [(0, 1), (1, 2)]),
    "an emoji cut in three, after text": (
        "x👩y",
        [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)],
        ["x", "ð", "ŁĳĀ"[:2], "©", "y"],
        [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6)],
    ),
    "byte fallback over two characters": (
        "é👩",
        [(0, 2)] * 6,
        ["<0xC3>", "<0xA9>", "<0xF0>", "<0x9F>", "<0x91>", "<0xA9>"],
        [(each, each + 1) for each in range(6)],
    ),
    "a space that was put in front": ("hi", [(0, 1), (0, 2)], ["▁", "hi"], [(0, 0), (0, 2)]),
    "pieces that normalisation changed": ("ﬁ", [(0, 1), (0, 1)], ["f", "i"], [(0, 3), (0, 3)]),
    "tokens around the text": ("ab", [(0, 0), (0, 2), (0, 0)], ["<s>", "ab", "</s>"], [(0, 0), (0, 2), (2, 2)]),
    "a gap of white space": ("a  b", [(0, 1), (3, 4)], ["a", "b"], [(0, 1), (3, 4)]),
    "nothing": ("", [], [], []),
}


@pytest.mark.parametrize("case", CASES)
def test_bytes_are_told_from_characters_and_pieces(case: str) -> None:
    text, offsets, pieces, wanted = CASES[case]
    begins, ends = byte_extents(text, offsets, pieces.__getitem__)
    assert list(zip(begins, ends, strict=True)) == wanted
