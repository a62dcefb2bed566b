"""Text that cannot harm a terminal and never takes more cells than it is given."""

from __future__ import annotations

import os
import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.text import cells, clip, clip_middle, did_you_mean, nearest, printable, printable_lines, shell_line
from hfbench.widgets.cells import clip as widget_clip
from hfbench.widgets.cells import clip_middle as widget_middle

ANY = st.text(st.characters(), max_size=80)  # surrogates included: names of files may hold any byte
HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(ANY)
def test_nothing_that_a_terminal_would_act_on_is_left(text: str) -> None:
    assert not {unicodedata.category(character) for character in printable(text)} & HARMFUL


@given(ANY)
def test_what_is_safe_stays_as_it_is(text: str) -> None:
    once = printable(text)
    assert printable(once) == once


def test_every_harmful_character_of_unicode_is_known() -> None:
    passed = [
        f"U+{n:04X}" for n in range(0x110000) if unicodedata.category(c := chr(n)) in HARMFUL and printable(c) == c
    ]
    assert passed == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größer 模型 🙂", "größer 模型 🙂"),
        ("a\x1b[31mred", r"a\x1b[31mred"),
        ("two\nlines\r\t", r"two\nlines\r\t"),
        ("evil\u202etxt.exe", r"evil\u202etxt.exe"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("filler\u3164", r"filler\u3164"),
        ("\x9b31m", r"\x9b31m"),
        (b"bad \xff".decode("utf-8", "surrogateescape"), r"bad \xff"),
        ("\ud800", r"\ud800"),
        ("back\\slash", "back\\slash"),
    ],
)
def test_what_is_harmful_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_are_cut_where_they_end_and_tabs_become_spaces() -> None:
    assert printable_lines("a\tb\n\x1b[2J\r\nc") == ["a   b", r"\x1b[2J", "c"]


@given(ANY, st.integers(0, 40), st.sampled_from(["…", "...", ""]))
def test_a_clipped_text_never_takes_more_room(text: str, width: int, ellipsis: str) -> None:
    for cut in (clip, clip_middle):
        shown = cut(text, width, ellipsis=ellipsis)
        assert cells(shown) <= width
        assert shown == text or cells(text) > width, "nothing is cut without need"


@pytest.mark.parametrize(
    ("text", "width", "end", "middle"),
    [
        ("model.layers.0.mlp", 18, "model.layers.0.mlp", "model.layers.0.mlp"),
        ("model.layers.0.mlp", 9, "model.la…", "mode….mlp"),
        ("模型模型", 5, "模型…", "模…型"),
        ("abc", 1, "…", "…"),
        ("abc", 0, "", ""),
    ],
)
def test_where_a_text_is_cut(text: str, width: int, end: str, middle: str) -> None:
    assert (clip(text, width), clip_middle(text, width)) == (end, middle)


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("模型", 4), ("e\u0301", 1), ("ก\u0e31", 1), ("ｆ", 2), ("", 0)]
)
def test_cells_are_counted_as_a_terminal_does(text: str, width: int) -> None:
    assert cells(text) == width


def test_a_near_miss_is_offered_and_nonsense_is_not() -> None:
    known = ["model", "dtype", "batch"]
    assert nearest("modle", known) == "model"
    assert did_you_mean("modle", known) == "did you mean 'model'?"
    assert did_you_mean("zzz", known) == ""


@pytest.mark.parametrize(
    "word", ["plain", "two words", "it's", "a\nb\x1b[31m", "\\'\t", "\u202e", "caf\xe9\n", "\udcff", "\x01f"]
)
def test_a_shell_reads_back_the_words_of_a_command_that_is_safe_to_paint(word: str) -> None:
    line = shell_line(["printf", "%s", word])
    assert printable(line) == line
    told = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
    assert told == os.fsencode(word)


@pytest.mark.parametrize("width", range(8, 34))
def test_no_cut_leaves_a_part_of_a_number(width: int) -> None:
    text = "1,000 bytes instead of 269,096,224"
    for shown in (clip(text, width), clip_middle(text, width), widget_clip(text, width), widget_middle(text, width)):
        assert cells(shown) <= width
        numbers = [part for part in shown.replace("…", " ").split() if part[0].isdigit()]
        assert set(numbers) <= {"1,000", "269,096,224"}, shown
