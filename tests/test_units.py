"""Numbers with units: GiB where they are GiB, and no dimension mistaken for another."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.errors import UsageError
from hfbench.units import (
    GIB,
    KIB,
    MIB,
    TIB,
    UNITS,
    convert,
    parse_duration,
    parse_quantity,
    show_ago,
    show_bytes,
    show_count,
    show_elapsed,
    show_seconds,
    show_value,
)

SHOWERS = [show_bytes, show_count, show_seconds, show_elapsed, show_ago]


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (KIB, "1.00 KiB"),
        (10**6, "977 KiB"),
        (269_030_016, "257 MiB"),
        (GIB, "1.00 GiB"),
        (10**9, "954 MiB"),
        (GIB - 1, "1.00 GiB"),
        (1.5 * TIB, "1.50 TiB"),
        (99.96 * MIB, "100 MiB"),
        (-GIB, "-1.00 GiB"),
    ],
)
def test_bytes_are_shown_in_binary_units(count: float, shown: str) -> None:
    assert show_bytes(count) == shown


@given(st.integers(0, 2**60))
def test_shown_bytes_are_within_half_a_percent(count: int) -> None:
    number, unit = show_bytes(count).split()
    scale = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}[unit]
    assert math.isclose(float(number) * scale, count, rel_tol=0.0051, abs_tol=0.5)
    assert len(number) <= 7


@pytest.mark.parametrize(
    ("count", "shown"),
    [(999, "999"), (134_515_008, "135M"), (7_615_616_512, "7.62B"), (1.04e12, "1.04T"), (49152, "49.2k")],
)
def test_parameters_are_counted_as_the_field_writes_them(count: float, shown: str) -> None:
    assert show_count(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 ns"),
        (8.12e-7, "812 ns"),
        (8.12e-4, "812 us"),
        (0.00812, "8.12 ms"),
        (0.9996, "1.00 s"),
        (1.352, "1.35 s"),
        (59.96, "1 m 00 s"),
        (185, "3 m 05 s"),
        (7800, "2 h 10 m"),
        (200_000, "2 d 7 h"),
    ],
)
def test_seconds_choose_their_scale(seconds: float, shown: str) -> None:
    assert show_seconds(seconds) == shown


@pytest.mark.parametrize("show", SHOWERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, -1.0])
def test_no_number_makes_a_screen_stumble(show: object, value: float) -> None:
    assert show(value)  # type: ignore[operator]
    assert show_value(value, "s")
    assert show_value(value, "tok/s").endswith("tok/s")


def test_a_share_of_a_minute_ago_is_whole() -> None:
    assert [show_ago(n) for n in (-3, 0.9, 61, 7200, 90_000)] == [
        "0 s ago",
        "0 s ago",
        "1 min ago",
        "2 h ago",
        "1 d ago",
    ]


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("50 ms", (50.0, "ms")),
        ("1.5GiB", (1.5, "GiB")),
        (" -3 ", (-3.0, None)),
        ("1e3 tok/s", (1000.0, "tok/s")),
        ("5%", (5.0, "%")),
    ],
)
def test_quantities_are_read_with_their_unit(text: str, quantity: tuple[float, str | None]) -> None:
    assert parse_quantity(text) == quantity


@pytest.mark.parametrize("text", ["", "ms", "fifty ms", "5 parsecs", "1 2", "1e999 s", "5ms ms", "0x10", "nan s"])
def test_other_quantities_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("value", "unit", "to", "is_"),
    [(50, "ms", "s", 0.05), (1, "GiB", "MiB", 1024), (1, "GB", "MB", 1000), (5, "%", "x", 0.05), (2, "h", "min", 120)],
)
def test_units_of_one_dimension_convert(value: float, unit: str, to: str, is_: float) -> None:
    assert math.isclose(convert(value, unit, to), is_)


@pytest.mark.parametrize(("unit", "to"), [("s", "GiB"), ("tok/s", "GB/s"), ("W", "C"), ("%", "ms")])
def test_units_of_two_dimensions_never_mix(unit: str, to: str) -> None:
    with pytest.raises(UsageError, match=f"{unit} is a .*, {to} is a "):
        convert(1, unit, to)


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(UsageError, match="unknown unit 'furlong'"):
        convert(1, "furlong", "s")


@given(st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)), st.floats(-1e12, 1e12))
def test_there_and_back_is_the_same(unit: str, to: str, value: float) -> None:
    if UNITS[unit][0] == UNITS[to][0]:
        assert math.isclose(convert(convert(value, unit, to), to, unit), value, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("90 s", 90),
        ("1h30m", 5400),
        ("1h 30 min", 5400),
        ("30d", 30 * 86400),
        ("2w 1d", 15 * 86400),
        ("250ms", 0.25),
        ("2.5", 2.5),
        (30, 30),
        ("1e-05", 1e-5),
    ],
)
def test_durations_are_read(text: str | int, seconds: float) -> None:
    assert math.isclose(parse_duration(text), seconds)


@pytest.mark.parametrize(
    "text",
    ["", "0", "-5s", "ten", "5 weeks", "1h30", "m", "1..5s", "inf", "nan", "9" * 400, "5s later", "5;s", "1e400"],
)
def test_other_durations_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="write for example 30s".capitalize()):
        parse_duration(text)
