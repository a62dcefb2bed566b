"""The header of safetensors: every way to be wrong has its code, and no bytes get past it."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models import header_rows
from hfbench.models.dtypes import BITS
from hfbench.models.header_exact import ExactReader
from hfbench.models.header_usual import read_usual
from hfbench.models.safetensors import Header, HeaderError, read_header

F32 = '"dtype":"F32","shape":[2]'


def read(raw: bytes) -> Header:
    return read_header(BytesIO(raw), len(raw))


def file(text: str | bytes, data: int = 0) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return len(raw).to_bytes(8, "little") + raw + bytes(data)


def entry(name: str, begin: int, end: int, rest: str = F32) -> str:
    return f'"{name}":{{{rest},"data_offsets":[{begin},{end}]}}'


def refused(raw: bytes) -> HeaderError:
    with pytest.raises(HeaderError) as caught:
        read(raw)
    return caught.value


def test_length_beyond_the_file_is_refused_at_byte_zero() -> None:
    error = refused(b"\xff\0\0\0\0\0\0\0{}")
    assert (error.code, error.at) == ("st_truncated_header", 0)
    assert "claims 255 bytes, 2 follow" in str(error)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "st_too_small"),
        (b"\x02\0\0\0\0\0\0", "st_too_small"),
        (file(""), "st_bad_json"),
        ((100_000_001).to_bytes(8, "little") + b"{}", "st_header_too_large"),
        (b"\xff" * 8 + b"{}", "st_header_too_large"),
        (file("{"), "st_bad_json"),
        (file("{}x"), "st_bad_json"),
        (file("{} {}"), "st_bad_json"),
        (file("{" + entry("a", 0, 8) + ",}", 8), "st_bad_json"),
        (file("{," + entry("a", 0, 8) + "}", 8), "st_bad_json"),
        (file("{" + entry("a", 0, 8) + entry("b", 8, 16) + "}", 16), "st_bad_json"),
        (file("{" + entry("a", 0, 8).replace("0,8", "00,8") + "}", 8), "st_bad_json"),
        (file("[]"), "st_bad_json"),
        (file(b"\xef\xbb\xbf{}"), "st_bad_json"),
        (file(b'{"\xff":1}'), "st_bad_json"),
        (file(b'{"a\n":1}'), "st_bad_json"),
        (file('{"a":' + "[" * 10_000 + "]" * 10_000 + "}"), "st_bad_json"),
        (file('{"a":NaN}'), "st_bad_json"),
        (file('{"a":1}'), "st_bad_entry"),
        (file('{"a":{}}'), "st_bad_entry"),
        (file('{"a":{"dtype":"F32","shape":[1]}}', 4), "st_bad_entry"),
        (file("{" + entry("a", 0, 8) + "," + entry("a", 0, 8) + "}", 8), "st_duplicate_key"),
        (file("{" + entry("a", 0, 8) + "," + entry("\\u0061", 8, 16) + "}", 16), "st_duplicate_key"),
        (file('{"a":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}}', 4), "st_duplicate_key"),
        (file('{"__metadata__":{"a":"1","a":"2"}}'), "st_duplicate_key"),
        (file('{"__metadata__":{},"__metadata__":{}}'), "st_duplicate_key"),
        (file("{" + entry("a", 0, 8, '"dtype":"f32","shape":[2]') + "}", 8), "st_unknown_dtype"),
        (file("{" + entry("a", 0, 8, '"dtype":7,"shape":[2]') + "}", 8), "st_unknown_dtype"),
        (file("{" + entry("a", 0, 8, '"dtype":"F32","shape":2') + "}", 8), "st_bad_shape"),
        (file("{" + entry("a", 0, 8, '"dtype":"F32","shape":[-2]') + "}", 8), "st_bad_shape"),
        (file("{" + entry("a", 0, 8, '"dtype":"F32","shape":[2.0]') + "}", 8), "st_bad_shape"),
        (file("{" + entry("a", 0, 8, '"dtype":"F32","shape":[true]') + "}", 8), "st_bad_shape"),
        (file("{" + entry("a", 0, 8, f'"dtype":"F32","shape":[{"9" * 5000}]') + "}", 8), "st_bad_shape"),
        (file("{" + entry("a", 0, 8, f'"dtype":"F32","shape":[{2**62},8]') + "}", 8), "st_overflow"),
        (file("{" + entry("a", 0, 0, f'"dtype":"F32","shape":[0,{10**30}]') + "}"), "st_bad_shape"),
        (file("{" + entry("a", -8, 0) + "}", 8), "st_bad_offsets"),
        (file("{" + entry("a", 0, 8).replace("[0,8]", "[0, +8]") + "}", 8), "st_bad_json"),
        (file("{" + entry("a", 0, 8).replace("[2]", "[1_0]") + "}", 8), "st_bad_json"),
        (file("{" + entry("a", 0, 2, '"dtype":"F4","shape":[3]') + "}", 2), "st_misaligned"),
        (file("{" + entry("a", 8, 0) + "}", 8), "st_bad_offsets"),
        (file(f'{{"a":{{{F32},"data_offsets":[0]}}}}', 8), "st_bad_offsets"),
        (file(f'{{"a":{{{F32},"data_offsets":[0,{2**64}]}}}}', 8), "st_bad_offsets"),
        (file("{" + entry("a", 0, 12) + "}", 12), "st_size_mismatch"),
        (file("{" + entry("a", 0, 8) + "," + entry("b", 4, 12) + "}", 12), "st_overlap"),
        (file("{" + entry("a", 0, 8) + "," + entry("b", 0, 8) + "}", 8), "st_overlap"),
        (file("{" + entry("a", 0, 8) + "," + entry("b", 12, 20) + "}", 20), "st_hole"),
        (file("{" + entry("a", 4, 12) + "}", 12), "st_hole"),
        (file("{" + entry("a", 0, 8) + "}", 9), "st_trailing"),
        (file("{}", 1), "st_trailing"),
        (file("{" + entry("a", 0, 8) + "}", 7), "st_truncated"),
        (file('{"__metadata__":7}'), "st_bad_metadata"),
        (file('{"__metadata__":{"epoch":3}}'), "st_bad_metadata"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_every_way_to_be_wrong_has_its_code(raw: bytes, code: str) -> None:
    assert refused(raw).code == code


@pytest.mark.parametrize(
    ("raw", "code", "word"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4096\n", "lfs_pointer", "4,096 bytes"),
        (b"<!DOCTYPE html><html></html>", "not_safetensors", "HTML"),
        (b"PK\x03\x04" + bytes(40), "not_safetensors", "zip"),
        (b"GGUF\x03\0\0\0" + bytes(40), "not_safetensors", "GGUF"),
        (b"\x80\x04\x95" + bytes(40), "not_safetensors", "pickle"),
    ],
)
def test_another_kind_of_file_is_called_by_its_name(raw: bytes, code: str, word: str) -> None:
    error = refused(raw)
    assert error.code == code
    assert word in str(error)


def test_an_error_names_the_tensor_and_its_byte() -> None:
    text = "{" + entry("é", 0, 8) + "," + entry("wrong", 8, 20) + "}"
    error = refused(file(text, 20))
    assert error.tensor == "wrong"
    assert error.at == 8 + len(text.encode()) + 8
    bad = "{" + entry("é", 0, 8) + ',"b":{"dtype":"F32"}}'
    assert refused(file(bad, 8)).at == 8 + bad.encode().index(b'"b"')


def test_what_is_accepted_against_the_letter_is_noted() -> None:
    assert [code for code, _ in read(file(" {}")).notes] == ["st_header_start"]
    assert [code for code, _ in read(file('{"__metadata__":null}')).notes] == ["st_bad_metadata"]
    assert read(file("{}   ")).notes == ()


@pytest.mark.parametrize("dtype", BITS)
def test_every_dtype_is_read(dtype: str) -> None:
    header = read(file("{" + entry("a", 0, BITS[dtype], f'"dtype":"{dtype}","shape":[4,2]') + "}", BITS[dtype]))
    assert header.kinds == [(dtype, (4, 2), BITS[dtype])]


def test_empty_tensors_scalars_and_extra_fields_are_read() -> None:
    empty = entry("e", 0, 0, '"dtype":"F32","shape":[0,5]')
    scalar = entry("s", 0, 4, '"dtype":"F32","shape":[],"extra":[{}]')
    header = read(file("{" + scalar + "," + empty + "}", 4))
    assert header.names == ["s", "e"]
    assert [header.kinds[kind][1] for kind in header.kind_ids] == [(), (0, 5)]


def test_a_sparse_header_of_99_megabytes_of_nul_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with open(path, "wb") as sparse:
        sparse.write((99_000_000).to_bytes(8, "little"))
        sparse.truncate(99_000_008)
    begun = time.process_time()
    with open(path, "rb") as sparse, pytest.raises(HeaderError) as caught:
        read_header(sparse, 99_000_008)
    assert caught.value.code == "st_bad_json"
    assert time.process_time() - begun < 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize("filler", ["[],", "{},", "1,"])
def test_one_entry_of_many_megabytes_is_refused_before_it_is_built(filler: str) -> None:
    tracemalloc.start()
    error = refused(file('{"a":[' + filler * (30_000_000 // len(filler)) + "1]}"))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "more than 500,000 values" in str(error)
    assert most < 300 * 2**20


def test_a_file_of_ever_different_shapes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_rows, "MOST_KINDS", 50)
    entries = [entry(str(n), 0, 0, f'"dtype":"U8","shape":[0,{n}]') for n in range(51)]
    assert refused(file("{" + ",".join(entries) + "}")).code == "st_too_many_shapes"


def test_a_header_padded_over_many_stretches_is_read() -> None:
    assert read(file("{" + entry("a", 0, 8) + "}" + " " * 3_000_000, 8)).names == ["a"]


def test_a_long_header_is_the_same_in_both_ways_of_reading() -> None:
    entries = [entry(f"layers.{n}.ü", 8 * n, 8 * n + 8) for n in range(40_000)]
    raw = file("{" + ",".join(entries) + "}", 8 * 40_000)
    length = int.from_bytes(raw[:8], "little")
    usual, exact = read_usual(BytesIO(raw), 8, length), ExactReader(BytesIO(raw), 8, length).read()
    assert usual is not None
    assert usual.names == exact.names == [f"layers.{n}.ü" for n in range(40_000)]
    assert (usual.begins, usual.ends, usual.kinds) == (exact.begins, exact.ends, exact.kinds)


layouts = st.lists(
    st.tuples(st.text(max_size=12), st.sampled_from(sorted(set(BITS) - {"F4"} - {d for d in BITS if "F6" in d}))),
    max_size=8,
    unique_by=lambda each: each[0],
).filter(lambda rows: all(name != "__metadata__" and name.isprintable() for name, _ in rows))


@settings(deadline=None)
@given(layouts, st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_any_spelling_of_a_layout_gives_its_rows(
    layout: list[tuple[str, str]], chance: random.Random, compact: bool, ascii_only: bool
) -> None:
    rows: dict[str, Any] = {}
    place = 0
    for name, dtype in layout:
        shape = [chance.randrange(4) for _ in range(chance.randrange(3))]
        size = BITS[dtype] // 8
        for length in shape:
            size *= length
        rows[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    names = list(rows)
    if not compact:
        chance.shuffle(names)
    separators = (",", ":") if compact else (" ,\n", "\t: ")
    text = json.dumps({name: rows[name] for name in names}, separators=separators, ensure_ascii=ascii_only)
    header = read(file(text, place))
    assert header.names == names
    for row, name in enumerate(names):
        dtype, shape, _ = header.kinds[header.kind_ids[row]]
        assert (dtype, list(shape), header.begins[row]) == (
            rows[name]["dtype"],
            rows[name]["shape"],
            rows[name]["data_offsets"][0],
        )


@settings(deadline=None)
@given(st.integers(0, 200), st.binary(min_size=1, max_size=3), st.booleans())
def test_a_damaged_header_is_read_or_refused_but_nothing_else(place: int, damage: bytes, cut: bool) -> None:
    good = file('{"__metadata__":{"format":"pt"},' + entry("a", 0, 8) + "," + entry("b", 8, 16) + "}", 16)
    raw = good[:place] + damage + (b"" if cut else good[place + len(damage) :])
    try:
        header = read(raw)
    except HeaderError:
        return
    assert sum(header.kinds[kind][2] for kind in header.kind_ids) == header.data_bytes
    assert json.loads(raw[8 : header.header_bytes]).keys() - {"__metadata__"} == set(header.names)
