"""The text of an entry: every key against a plain string with a position, and what is kept for undoing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.widgets import text_buffer
from hfbench.widgets.text_buffer import TextBuffer

TEXTS = st.text(st.sampled_from("ab é\n漢x"), max_size=6)
STEPS = st.one_of(
    st.tuples(st.just("insert"), TEXTS),
    st.tuples(st.sampled_from(["delete", "move", "move_end", "delete_line"]), st.sampled_from([-1, 1])),
)


def flat(buffer: TextBuffer) -> int:
    """The cursor as a position in the text."""
    return sum(len(line) + 1 for line in buffer.lines[: buffer.row]) + buffer.column


def after(text: str, place: int, step: str, given: str | int) -> tuple[str, int]:
    """What a step makes of a plain string and a position in it."""
    begin = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place) if "\n" in text[place:] else len(text)
    if step == "insert":
        return text[:place] + str(given) + text[place:], place + len(str(given))
    back = given == -1
    if step == "move_end":
        return text, begin if back else end
    if step == "delete_line":
        return (text[:begin] + text[place:], begin) if back else (text[:place] + text[end:], place)
    other = max(0, place - 1) if back else min(len(text), place + 1)
    if step == "move":
        return text, other
    low, high = sorted((place, other))
    return text[:low] + text[high:], low


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.lists(STEPS, max_size=20))
def test_every_key_does_what_it_does_to_a_plain_string(begin: str, steps: list[tuple[str, str | int]]) -> None:
    buffer = TextBuffer(begin)
    text, place = begin, len(begin)
    for step, given_ in steps:
        getattr(buffer, step)(given_)
        text, place = after(text, place, step, given_)
        assert (buffer.text, flat(buffer), buffer.size) == (text, place, len(text))


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.lists(STEPS, max_size=12))
def test_undoing_everything_brings_the_begin_back(begin: str, steps: list[tuple[str, str | int]]) -> None:
    buffer = TextBuffer(begin)
    for step, given_ in steps:
        getattr(buffer, step)(given_)
    while buffer.undo():
        assert buffer.size == len(buffer.text)
    assert buffer.text == begin


def test_letters_typed_in_a_row_are_undone_together() -> None:
    buffer = TextBuffer("x")
    for letter in "abc":
        buffer.insert(letter)
    buffer.move(-1)
    buffer.insert("d")
    assert buffer.text == "xabdc"
    assert (buffer.undo(), buffer.text) == (True, "xabc")
    assert (buffer.undo(), buffer.text) == (True, "x")
    assert not buffer.undo()


def test_words_are_passed_and_taken_whole() -> None:
    buffer = TextBuffer("one two  three")
    buffer.delete(-1, word=True)
    assert buffer.text == "one two  "
    buffer.move(-1, word=True)
    assert buffer.column == 4
    buffer.move(1, word=True)
    assert buffer.column == 7
    buffer.move_end(-1)
    buffer.delete(1, word=True)
    assert buffer.text == " two  "


def test_a_combining_character_is_passed_with_its_letter() -> None:
    buffer = TextBuffer("ae\u0301b")
    buffer.move(-1)
    buffer.move(-1)
    assert buffer.column == 1
    buffer.move(1)
    assert buffer.column == 3


def test_lines_are_left_at_their_ends_only() -> None:
    buffer = TextBuffer("long line\nb")
    assert buffer.move_line(-1)
    assert (buffer.row, buffer.column) == (0, 1)
    assert not buffer.move_line(-1)
    assert buffer.move_line(1)
    assert not buffer.move_line(1)


def test_ends_of_lines_of_any_kind_are_one_kind() -> None:
    assert TextBuffer("a\r\nb\rc\nd").lines == ["a", "b", "c", "d"]


def test_what_goes_beyond_the_limit_is_left_out_and_told(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(text_buffer, "MOST_CHARACTERS", 10)
    buffer = TextBuffer("12345")
    buffer.insert("6789012")
    assert (buffer.text, buffer.full) == ("1234567890", True)
    buffer.insert("x")
    assert (buffer.text, buffer.full) == ("1234567890", True)
    buffer.delete(-1)
    assert not buffer.full
    buffer.insert("x")
    assert (buffer.text, buffer.full) == ("123456789x", False)
    assert TextBuffer("x" * 11).full


def test_a_megabyte_keeps_few_states_for_undoing() -> None:
    buffer = TextBuffer("x" * 2**20)
    for _ in range(100):
        buffer.insert("ab")
    kept = sum(len(line) for before in buffer._undo for line in before.lines)
    assert kept <= text_buffer.MOST_KEPT + 2**21
    assert buffer.undo()
