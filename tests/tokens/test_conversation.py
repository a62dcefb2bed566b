"""Messages and tools out of a user's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hfbench.errors import UsageError
from hfbench.tokens.conversation import SAMPLE_MESSAGES, of_texts, read_messages, read_text, read_tools

HELLO = [{"role": "user", "content": "hello"}]
TOOL = [{"type": "function", "function": {"name": "f"}}]


@pytest.mark.parametrize("content", [HELLO, {"messages": HELLO, "model": "x"}], ids=["list", "object"])
def test_a_list_and_a_request_both_hold_messages(tmp_path: Path, content: object) -> None:
    (tmp_path / "m.json").write_text(json.dumps(content))
    assert read_messages(tmp_path / "m.json") == HELLO


def test_tools_stand_in_a_list_or_beside_messages(tmp_path: Path) -> None:
    for content in (TOOL, {"tools": TOOL}):
        (tmp_path / "t.json").write_text(json.dumps(content))
        assert read_tools(tmp_path / "t.json") == TOOL


WRONG: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"[{]", "m.json: this is no JSON: line 1, column 3"),
    "no list": (b'"x"', "this is no list of messages"),
    "an empty list": (b"[]", "this is no list of messages"),
    "no role": (b'[{"role": "user"}, {"content": "x"}]', "message 2 is no object with a role"),
    "a role that is no text": (b'[{"role": 1}]', "message 1"),
    "no UTF-8": (b'[{"role": "\xff"}]', "byte 0xff at 11 is not UTF-8"),
    "nested without an end": (b"[" * 100_000, "nested too deeply"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_conversation_says_why(tmp_path: Path, case: str) -> None:
    content, sentence = WRONG[case]
    (tmp_path / "m.json").write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        read_messages(tmp_path / "m.json")


def test_a_file_that_is_not_there_or_too_long_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone: cannot be read"):
        read_tools(tmp_path / "gone")
    (tmp_path / "long").write_text("xxxx")
    with pytest.raises(UsageError, match="has more than 3 bytes"):
        read_text(tmp_path / "long", 3)


def test_texts_make_messages_and_nothing_makes_the_sample() -> None:
    assert of_texts("be brief", "hi") == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ]
    assert of_texts(None, None) == list(SAMPLE_MESSAGES)
