"""An error is one sentence, the same for a terminal, a screen and JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.errors import (
    HfbenchError,
    Interrupted,
    MissingError,
    UnforeseenError,
    UsageError,
    error_from_parts,
    foreseen,
)
from hfbench.exits import Exit, complain


def test_the_sentence_says_where_what_and_what_to_do() -> None:
    error = UsageError("batch 0 is too small.", where="bench.generate", remedy="use at least 1.")
    assert str(error) == "bench.generate: batch 0 is too small. Use at least 1"
    assert (error.found, error.where, error.remedy) == ("batch 0 is too small", "bench.generate", "use at least 1")


def test_a_question_is_not_ended_twice() -> None:
    assert str(HfbenchError("did you mean 'fp32'?", remedy="write it")) == "did you mean 'fp32'? Write it"


def test_a_command_in_a_remedy_is_written_as_it_is_typed() -> None:
    assert str(HfbenchError("no", remedy="hfbench demo makes one")) == "no. hfbench demo makes one"


@given(st.text(st.characters()), st.text(st.characters()), st.text(st.characters()))
def test_no_part_of_an_error_can_reach_the_terminal_raw(found: str, where: str, remedy: str) -> None:
    sentence = str(HfbenchError(found, where=where, remedy=remedy))
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in sentence)


@pytest.mark.parametrize("kind", [HfbenchError, UsageError, MissingError, Interrupted])
def test_an_error_crosses_a_process_border_as_it_is(kind: type[HfbenchError]) -> None:
    error = kind("found", where="where", remedy="do")
    again = error_from_parts(error.parts())
    assert (type(again), str(again), again.exit) == (kind, str(error), error.exit)


@pytest.mark.parametrize("parts", [{}, {"exit": "no"}, {"exit": 99, "found": 5}, {"exit": None, "where": None}])
def test_parts_of_another_version_are_still_an_error(parts: dict[str, object]) -> None:
    assert error_from_parts(parts).exit is Exit.FAILED


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "out of host memory. Use a smaller batch"),
        (
            type("OutOfMemoryError", (RuntimeError,), {})("CUDA: tried 2 GiB\nmore"),
            "out of device memory: CUDA: tried 2 GiB",
        ),
        (OSError(28, "No space left on device"), "a disk is full: No space left on device. Free some space"),
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b: Permission denied"),
        (OSError("odd"), "OSError: odd. Look there"),
        (KeyError("x"), "KeyError: 'x'. Look there"),
        (ValueError(), "ValueError: no message. Look there"),
        (RecursionError("deep"), "something is nested too deeply. Look there"),
        (ValueError("x" * 10_000), "ValueError: xxx"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_nobody_raised_on_purpose_becomes_a_sentence(error: Exception, told: str) -> None:
    found = foreseen(error, traceback="look there")
    assert str(found).startswith(told)
    assert len(str(found)) < 2100
    assert isinstance(found, UnforeseenError) == ("Look there" in str(found))


def test_what_is_a_sentence_already_stays_itself() -> None:
    error = MissingError("no GPU")
    assert foreseen(error, traceback="") is error


def test_a_complaint_is_one_safe_line(capsys: pytest.CaptureFixture[str]) -> None:
    complain("a\x1b[2J\nb")
    assert capsys.readouterr().err == "hfbench: a\\x1b[2J\\nb\n"
