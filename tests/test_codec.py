"""Dataclasses to JSON and back, strictly enough that a reader never meets a value of another type."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.codec import decode, encode


class Colour(StrEnum):
    """A word."""

    RED = "red"


@dataclass(frozen=True)
class Reason:
    """Why there is no value."""

    reason: str


@dataclass(frozen=True)
class Part:
    """A part of the whole."""

    name: str
    value: float | Reason
    count: int = 0


@dataclass(frozen=True)
class Whole:
    """One of everything."""

    parts: tuple[Part, ...]
    colour: Colour
    path: Path | None
    mode: Literal["a", "b"] = "a"
    pair: tuple[int, str] = (1, "x")
    flags: list[bool] = field(default_factory=list)
    table: dict[str, float] = field(default_factory=dict)
    anything: Any = None


parts = st.builds(Part, st.text(), st.floats(allow_nan=False) | st.builds(Reason, st.text()), st.integers())
wholes = st.builds(
    Whole,
    st.lists(parts, max_size=3).map(tuple),
    st.just(Colour.RED),
    st.none() | st.just(Path("a/b")),
    st.sampled_from(["a", "b"]),
    st.tuples(st.integers(), st.text()),
    st.lists(st.booleans(), max_size=3),
    st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=3),
    st.none() | st.integers() | st.lists(st.text()),
)


@given(wholes)
def test_what_is_written_reads_back(whole: Whole) -> None:
    assert decode(Whole, json.loads(json.dumps(encode(whole), allow_nan=False))) == whole


def test_numbers_that_json_cannot_write_are_named() -> None:
    assert encode([math.nan, math.inf, -math.inf, 1.5]) == ["nan", "inf", "-inf", 1.5]
    assert math.isnan(decode(Part, {"name": "p", "value": "nan"}).value)  # type: ignore[arg-type]


def test_numbers_of_other_libraries_stay_numbers() -> None:
    assert encode(Fraction(1, 2)) == 0.5


def test_numbers_of_numpy_stay_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    told = encode({"i": numpy.int64(3), "f": numpy.float32(0.5), "n": numpy.float32("nan")})
    assert told == {"i": 3, "f": 0.5, "n": "nan"}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "text",
        {},
        {"name": 5, "value": 1.0},
        {"name": "p", "value": "high"},
        {"name": "p", "value": True},
        {"name": "p", "value": {"why": "no"}},
        {"name": "p", "value": 10**400},
        {"name": "p", "value": 1.0, "count": "3"},
        {"name": "p", "value": 1.0, "count": True},
        {"name": "p", "value": 1.0, "count": 1.5},
        {"name": "p", "value": 1.0, "count": None},
    ],
)
def test_data_of_another_shape_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|missing"):
        decode(Part, data)


@pytest.mark.parametrize(
    ("key", "value"),
    [("parts", "ab"), ("pair", [1]), ("table", [1]), ("table", {"a": 10**400}), ("colour", "blue")],
)
def test_containers_of_another_shape_are_refused(key: str, value: Any) -> None:
    data = {"parts": [], "colour": "red", "path": None}
    assert decode(Whole, data).path is None
    with pytest.raises(ValueError):
        decode(Whole, {**data, key: value})


def test_fields_of_a_newer_version_are_left_out() -> None:
    assert decode(Part, {"name": "p", "value": 2, "mood": "good"}) == Part("p", 2.0)
