"""Tokens as lines: marks between them, visible white space, and rendered text broken between words."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.tokens.encoded import ADDED, PLAIN, SPECIAL, Encoded
from hfbench.widgets.cells import spans_width, width_of
from hfbench.widgets.glyphs import ASCII, UNICODE
from hfbench.widgets.token_flow import TokenFlow
from hfbench.widgets.token_lines import flow, marked_lines, marks_of, special_segments, token_text, visible
from hfbench.widgets.token_table import TokenTable

MARKS = marks_of(UNICODE)


def encoded(*tokens: str | bytes, kinds: bytes = b"") -> Encoded:
    """Tokens of these texts; the number of each is its id."""
    raws = [each.encode() if isinstance(each, str) else each for each in tokens]
    ends = [sum(map(len, raws[: row + 1])) for row in range(len(raws))]
    return Encoded(
        raw=b"".join(raws),
        characters=0,
        ids=array("I", range(len(raws))),
        begins=array("I", [end - len(raw) for end, raw in zip(ends, raws, strict=True)]),
        ends=array("I", ends),
        kinds=kinds or bytes([PLAIN] * len(raws)),
        pieces={row: f"piece{row}" for row in range(len(raws))},
    )


def texts(lines: list[list[tuple[str, str]]]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_white_space_and_controls_are_seen() -> None:
    assert visible("a b\t\n\x1b\u202e", MARKS) == "a·b→↵\\x1b\\u202e"
    assert visible("a b\t\n", marks_of(ASCII)) == "a_b\\t\\n"
    assert token_text(encoded(b"\xf0\x9f"), 0, MARKS) == "\\xf0\\x9f"


def test_tokens_stand_beside_each_other_with_a_mark_between_two() -> None:
    lines, after = flow(encoded("Be", " brief", "\n", "x"), 0, 20, 5, MARKS)
    assert texts(lines) == ["Be│·brief│↵", "x"]
    assert after == 4
    assert [style for text, style in lines[0] if text != "│"] == ["", "accent", ""]


def test_special_added_and_current_tokens_have_styles_of_their_own() -> None:
    told = encoded("<s>", "t", "x", kinds=bytes([SPECIAL, ADDED, PLAIN]))
    lines, _ = flow(told, 0, 40, 2, MARKS, cursor=2)
    assert [style for text, style in lines[0] if text != "│"] == ["title", "warn", "cursor"]


def test_a_token_of_no_text_shows_its_piece() -> None:
    assert texts(flow(encoded("", "a"), 0, 40, 2, MARKS)[0]) == ["piece0│a"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("ab 漢\n\x1bé"), min_size=1, max_size=12), min_size=1, max_size=30),
    st.integers(4, 30),
    st.integers(1, 6),
)
def test_lines_keep_to_their_width_and_hold_the_tokens_in_order(tokens: list[str], width: int, height: int) -> None:
    told = encoded(*tokens)
    first, seen = 0, ""
    while first < len(tokens):
        lines, after = flow(told, first, width, height, MARKS)
        assert 0 < len(lines) <= height
        assert all(spans_width(line) <= width for line in lines)
        shown = "".join(texts(lines)).replace("│", "")
        wanted = "".join(visible(each, MARKS) for each in tokens[first:])
        assert wanted.startswith(shown)
        if after == first:  # one token alone is longer than what there is to see
            assert width_of(visible(tokens[first], MARKS)) > width
            after += 1
        seen += shown
        first = after
    assert seen


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.text(st.sampled_from("ab 漢\nx"), max_size=30), st.sampled_from(["", "title"])), max_size=6),
    st.integers(4, 40),
)
def test_rendered_text_keeps_to_its_width_and_loses_nothing(segments: list[tuple[str, str]], width: int) -> None:
    lines = marked_lines(segments, width, MARKS)
    assert all(spans_width(line) <= width for line in lines)
    joined = "".join(texts(lines))
    assert joined.replace("↵", "\n") == "".join(text for text, _ in segments)


def test_a_line_is_broken_between_words_and_its_end_is_marked() -> None:
    lines = marked_lines([("You are helpful<|end|>\nnext", "")], 16, MARKS)
    assert texts(lines) == ["You are ", "helpful<|end|>↵", "next"]


def test_special_tokens_stand_out_in_a_text_and_its_begin_is_enough() -> None:
    told = encoded("<s>", "é a", "</s>", "b", kinds=bytes([SPECIAL, PLAIN, SPECIAL, PLAIN]))
    assert special_segments("<s>é a</s>b", told) == [("<s>", "title"), ("é a", ""), ("</s>", "title"), ("b", "")]
    assert special_segments("<s>é a<", told) == [("<s>", "title"), ("é a<", "")]
    assert special_segments("é", None) == [("é", "")]


class Shown:
    """A table and the flow above it, as their owner ties them."""

    def __init__(self, told: Encoded) -> None:
        self.told, self.table, self.flow = told, TokenTable(), TokenFlow()

    def show(self) -> None:
        self.table.show(self.told)
        self.flow.show(self.told, 0)


async def test_the_table_tells_number_id_bytes_kind_text_and_piece(stage: Any) -> None:
    shown = Shown(encoded("Be", " é", "<s>", "", kinds=bytes([PLAIN, ADDED, SPECIAL, SPECIAL])))
    async with stage(shown.flow, shown.table) as pilot:
        shown.show()
        await pilot.pause()
        rows = [" ".join(line.split()) for line in pilot.app.picture()]
        assert rows[0] == "Be│·é│<s>│piece3"
        assert "# Id Bytes Kind Text Piece" in rows
        assert "> 0 0 0-2 Be piece0" in rows
        assert "1 1 2-5 added ·é piece1" in rows
        assert "2 2 5-8 special <s> piece2" in rows
        assert "3 3 8-8 special piece3" in rows
        await pilot.press("enter")
        assert len(pilot.app.heard_of(TokenTable.Chosen)) == 1


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 16)])
async def test_a_million_tokens_are_gone_through_and_the_text_follows(stage: Any, size: tuple[int, int]) -> None:
    count = 1_000_000
    column = array("I", range(count + 1))
    told = Encoded(
        raw=b"x" * count,
        characters=count,
        ids=array("I", bytes(4 * count)),
        begins=column[:-1],
        ends=column[1:],
        kinds=bytes(count),
        pieces={0: "x"},
    )
    shown = Shown(told)
    async with stage(shown.flow, shown.table, size=size) as pilot:
        shown.show()
        await pilot.press("end")
        assert shown.table.cursor == count - 1
        await pilot.pause()
        assert "999,999-1,000,000" in "\n".join(pilot.app.picture())
        for row in (count - 1, 500_000, 499_990, 0):
            shown.flow.move(row)
            lines = shown.flow.lines(shown.flow.size.width, shown.flow.size.height)
            assert sum(style == "cursor" for line in lines for _, style in line) == 1
