"""The header reader against the library of the format itself: both take the same files and refuse the same."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hfbench.models.dtypes import BITS
from hfbench.models.safetensors import HeaderError, read_header

library = pytest.importorskip("safetensors")

STRICTER = {"st_duplicate_key"}
"""What the format forbids and the library takes: it keeps the last of two equal names."""

TOKENS = [
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"\\", b"\0", b"\xff", b"\xef\xbb\xbf"),
    *(b"0", b"1", b"-", b"-0", b"-1", b".5", b"e5", b"1e999", b"18446744073709551615", b"9" * 30, b"9" * 400),
    *(b"true", b"null", b"NaN", b'"F32"', b'"f32"', b'"a"', b'"__metadata__":', b'"x":1,', b"[[]]", b"[" * 130),
    *(b"\\u0061", b"\\ud800", b"\\ud83d\\ude00", b"\\x", b"//c\n"),
]

layouts = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "ü", 'q"', "w.0.x", ""]),
        st.sampled_from(sorted(BITS)),
        st.lists(st.sampled_from([0, 1, 2, 8]), max_size=3),
    ),
    max_size=3,
    unique_by=lambda each: each[0],
)
edits = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([b"", *TOKENS]), st.integers(0, 8)), max_size=3)


def header_of(layout: list[tuple[str, str, list[int]]], metadata: Any) -> tuple[dict[str, Any], int]:
    """A header that nothing is wrong with, and the bytes of its data."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    place = 0
    for name, dtype, shape in layout:
        bits, sizes = BITS[dtype], list(shape)
        for size in sizes:
            bits *= size
        if bits % 8:
            bits, sizes = bits * 8, [8, *sizes]
        header[name] = {"dtype": dtype, "shape": sizes, "data_offsets": [place, place + bits // 8]}
        place += bits // 8
    return header, place


def accepted(raw: bytes) -> bool:
    try:
        library.deserialize(raw)
    except Exception:
        return False
    return True


def code_of(raw: bytes) -> str:
    """The code of the error, empty when the file is read."""
    try:
        read_header(BytesIO(raw), len(raw))
    except HeaderError as error:
        return error.code
    return ""


def whole(text: bytes, data: int, longer: int = 0) -> bytes:
    return max(0, len(text) + longer).to_bytes(8, "little") + text + bytes(max(0, data))


@settings(max_examples=1000, deadline=None)
@given(
    layouts,
    st.sampled_from([None, {}, {"format": "pt"}, {"é": "x"}]),
    edits,
    st.booleans(),
    st.sampled_from([0, 0, 0, 1, 7]),
    st.sampled_from([0, 0, 0, 0, 1, -1]),
    st.sampled_from([0, 0, 0, 0, 0, 1, -1]),
)
@example([("a", "F32", [2])], None, [(0.5, b"-0", 0)], True, 0, 0, 0)
@example([("a", "F32", [0])], {"format": "pt"}, [(0.3, b"\\ud800", 0)], True, 0, 0, 0)
def test_a_file_is_read_exactly_when_the_library_reads_it(
    layout: list[tuple[str, str, list[int]]],
    metadata: Any,
    changes: list[tuple[float, bytes, int]],
    compact: bool,
    padding: int,
    more_data: int,
    longer: int,
) -> None:
    header, data = header_of(layout, metadata)
    text = json.dumps(header, separators=(",", ":") if compact else None, ensure_ascii=not compact).encode()
    for share, token, cut in changes:
        place = int(share * len(text))
        text = text[:place] + token + text[place + cut :]
    raw = whole(text + b" " * padding, data + more_data, longer)
    code = code_of(raw)
    assert code in STRICTER or accepted(raw) == (not code), (raw, code)


ODD = {
    "a negative zero as a size": (b'{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}', 0, "st_bad_shape"),
    "half a character": (b'{"\\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4, "st_bad_json"),
    "half a character in the metadata": (b'{"__metadata__":{"a":"\\udc00"}}', 0, "st_bad_json"),
    "a number that no double holds": (
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1e999}}',
        4,
        "st_bad_json",
    ),
    "an integer that no double holds": (
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' + b"9" * 400 + b"}}",
        4,
        "st_bad_json",
    ),
    "126 lists in a further field": (
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' + b"[" * 126 + b"]" * 126 + b"}}",
        4,
        "st_bad_json",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_what_only_the_format_s_own_parser_minds_is_refused_too(case: str) -> None:
    text, data, code = ODD[case]
    raw = whole(text, data)
    assert (code_of(raw), accepted(raw)) == (code, False)


def test_125_lists_in_a_further_field_are_read_by_both() -> None:
    text = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' + b"[" * 125 + b"]" * 125 + b"}}"
    assert (code_of(whole(text, 4)), accepted(whole(text, 4))) == ("", True)


@pytest.mark.parametrize("spelling", [{"separators": (",", ":")}, {}, {"indent": 1}, {"ensure_ascii": False}])
def test_every_spelling_of_many_tensors_gives_the_same_rows(spelling: dict[str, Any]) -> None:
    rows = {f"layers.{n}.ü": {"dtype": "F16", "shape": [2], "data_offsets": [4 * n, 4 * n + 4]} for n in range(30_000)}
    raw = whole(json.dumps(rows, **spelling).encode(), 120_000)
    header = read_header(BytesIO(raw), len(raw))
    assert header.names == list(rows)
    assert header.begins.tolist() == list(range(0, 120_000, 4))


@pytest.mark.parametrize("spelling", [{"separators": (",", ":")}, {}])
def test_a_name_that_comes_again_much_later_is_found_and_placed(spelling: dict[str, Any]) -> None:
    rows = {f"x{n}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for n in range(30_000)}
    text = json.dumps(rows, **spelling).replace('"x29999"', '"x0"')
    raw = whole(text.encode(), 0)
    with pytest.raises(HeaderError) as caught:
        read_header(BytesIO(raw), len(raw))
    assert (caught.value.code, caught.value.tensor) == ("st_duplicate_key", "x0")
    assert caught.value.at == 8 + text.rindex('"x0"')


def test_one_odd_entry_among_many_is_named_with_its_place() -> None:
    rows: dict[str, Any] = {f"x{n}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for n in range(30_000)}
    rows["x29000"]["shape"] = [True]
    raw = whole(json.dumps(rows).encode(), 0)
    with pytest.raises(HeaderError) as caught:
        read_header(BytesIO(raw), len(raw))
    assert (caught.value.code, caught.value.tensor) == ("st_bad_shape", "x29000")
    assert caught.value.at == raw.index(b'"x29000"')
