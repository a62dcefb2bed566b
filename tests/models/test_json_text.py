"""JSON objects: every fault is told by line and column, every oddity is noted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models.json_text import JsonError, parse_object, read_object


@pytest.mark.parametrize(
    ("raw", "fault", "word"),
    [
        (b"", "empty", "empty"),
        (b" \n", "empty", "white space"),
        (b"\xef\xbb\xbf{}", "bom", "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "encoding", "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "encoding", "UTF-16"),
        (b'{"a": "\xe9"}', "encoding", "0xe9"),
        (b'{"a": 1, // no\n}', "syntax", "a comment"),
        (b'{"a": 1,}', "syntax", "a comma before"),
        (b'{"a": [1,]}', "syntax", "a comma before"),
        (b'{"a": 1', "syntax", "ends too early"),
        (b'{"a": 1} {"b": 2}', "syntax", "more text"),
        (b"{'a': 1}", "syntax", "property name"),
        (b'{"a":' + b"[" * 100_000, "syntax", "deeply"),
        (b"[1]", "not_object", "a list"),
        (b"null", "not_object", "null"),
        (b"3", "not_object", "a number"),
        (b"version https://git-lfs.github.com/spec/v1\n", "lfs_pointer", "git-lfs"),
        (b"<html>", "syntax", "HTML"),
        (b'{"a":[' + b"[],[]," * 700_000 + b"1]}", "syntax", "values"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_no_object_is_told_in_words(raw: bytes, fault: str, word: str) -> None:
    with pytest.raises(JsonError, match=word) as caught:
        parse_object(raw)
    assert caught.value.fault == fault


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [('{"a": 1,\n "b" 2}', 2, 6), ('{\n\n  "a": @}', 3, 8), ('{"a": "é",\n}', 2, 1)],
)
def test_a_fault_has_its_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(JsonError) as caught:
        parse_object(text.encode())
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"line {line}, column {column}: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [('{"a": NaN}', "nan"), ('{"a": 1, "a": 2}', "duplicate"), ('{"a": 1' + "0" * 5000 + "}", "huge_number")],
    ids=["nan", "duplicate", "huge"],
)
def test_what_lenient_readers_take_is_read_and_noted(text: str, kind: str) -> None:
    read = parse_object(text.encode())
    assert "a" in read.value
    assert [note.kind for note in read.notes] == [kind]


def test_an_error_names_its_file_once(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("[]")
    with pytest.raises(JsonError) as caught:
        read_object(path)
    assert str(caught.value) == f"{path}: the root is a list, an object {{...}} is needed"


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_an_object_or_a_json_error(raw: bytes) -> None:
    try:
        read = parse_object(raw)
    except JsonError:
        return
    assert isinstance(read.value, dict)
