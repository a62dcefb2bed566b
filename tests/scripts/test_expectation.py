"""Expectations: what can be written, how units are compared, and what is said when they do not hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.scripts.expectation import BadExpectation, Verdict, judge, parse_expectation
from hfbench.scripts.lookup import NotThere, look_up

RESULT: dict[str, Any] = {
    "dtype": "bf16",
    "stable": True,
    "note": None,
    "load_seconds": 90.0,
    "peak_memory": {"rss_bytes": 3 * 2**30},
    "findings": {"error": 0, "warning": 2},
    "output_ids": [[5, 6, 7]],
    "metrics": {
        "tpot": {"p50": 0.050, "p99": 0.061, "n": 20, "drift": 0.04, "samples": [0.05, 0.06], "unit": "s"},
        "throughput": {"p50": 20.0, "unit": "tok/s"},
        "temperature": {"last": 61.0, "unit": "C"},
        "odd": {"p50": 3.0, "unit": "furlong"},
    },
}


def verdict(text: str) -> Verdict:
    """How an expectation of the result above goes."""
    expectation = parse_expectation(text, 1)
    return judge(expectation, look_up(RESULT, expectation.path))


@pytest.mark.parametrize(
    "text",
    [
        *("tpot.p50 < 51 ms", "metrics.tpot.p50 >= 50 ms", "tpot.p50 < 1 m", "tpot.p50 > 49000 us", "tpot.p99<0.1s"),
        *("tpot.p50 within 10% of 48 ms", "tpot.p50 within 0.1 % of 50 ms", "throughput.p50 >= 20 tok/s"),
        *(
            "load_seconds == 90 s",
            "load_seconds == 1.5 min",
            "peak_memory.rss_bytes == 3 GiB",
            "peak_memory.rss_bytes < 4 GB",
        ),
        *("dtype == bf16", "dtype == 'bf16'", 'dtype != "fp32"', "stable == true", "stable != false", "note == null"),
        *(
            "dtype != null",
            "findings.error == 0",
            "findings.warning != 0",
            "output_ids.count == 1",
            "output_ids.0.2 == 7",
        ),
        *(
            "tpot.n == 20",
            "tpot.drift < 5%",
            "tpot.drift < 0.05",
            "tpot.p50 > 0",
            "tpot.samples.count == 2",
            "odd.p50 == 3",
        ),
        *("tpot.samples.1 == 60 ms", "temperature.last < 80 C"),
    ],
)
def test_what_holds(text: str) -> None:
    found = verdict(text)
    assert found.ok is True, found


@pytest.mark.parametrize(
    ("text", "actual", "unit"),
    [
        ("tpot.p99 < 50 ms", 61.0, "ms"),
        ("tpot.p50 within 10% of 40 ms", 50.0, "ms"),
        ("findings.warning == 0", 2, ""),
        ("dtype == fp32", "bf16", ""),
        ("dtype == eager", "bf16", ""),
        ("stable == false", True, ""),
        ("note != null", None, ""),
        ("peak_memory.rss_bytes < 2 GiB", 3.0, "GiB"),
    ],
)
def test_what_does_not_hold_tells_the_value_in_the_unit_asked_for(text: str, actual: object, unit: str) -> None:
    found = verdict(text)
    assert (found.ok, found.actual, found.unit) == (False, actual, unit)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tpot.p99 < 50", "tpot.p99 is measured in s; write the unit beside 50"),
        ("tpot.p99 < 50 MiB", "tpot.p99: s is a time, MiB is a bytes"),
        ("findings.error < 5 ms", "findings.error has no unit; write the number alone"),
        ("odd.p50 < 5 ms", "odd.p50 has no unit; write the number alone"),
        ("stable == 1", "stable is true and cannot be compared with the number 1"),
        ("findings.error == false", "findings.error is the number 0 and cannot be compared with false"),
        ("dtype < 3", "dtype is the text 'bf16' and cannot be compared with the number 3"),
        ("note < 3", "note is nothing"),
        ("output_ids == 3", "output_ids is a list of 1; ask for its count or one of its items"),
        ("findings == 0", "findings is an object with error, warning; ask for one of them"),
    ],
)
def test_comparisons_that_make_no_sense_fail_with_a_reason(text: str, reason: str) -> None:
    found = verdict(text)
    assert (found.ok, found.reason) == (False, reason)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("tpto.p50", "there is no 'tpto' in the result; did you mean 'tpot'?"),
        ("tpot.p95", "there is no 'p95' in tpot; did you mean 'p99'?"),
        ("zzz", "there is no 'zzz' in the result; there is dtype, stable, note, "),
        ("output_ids.7", "output_ids has 1 items, numbered from 0; there is no 7"),
        ("output_ids.first", "output_ids is a list of 1; ask for its count or an item by number, not 'first'"),
        ("load_seconds.p50", "load_seconds is a single value and has no 'p50'"),
        ("note.x", "note is a single value and has no 'x'"),
        ("dtype.name", "dtype is a single value and has no 'name'"),
        ("output_ids." + "9" * 5000, "output_ids has 1 items"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(path: str, told: str) -> None:
    with pytest.raises(NotThere) as caught:
        look_up(RESULT, path.split("."))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "tpot",
            "tpot <",
            "< 3",
            "tpot << 3",
            "tpot < 3 4",
            "tpot = 3",
            "tpot == ",
            "tpot ~ 3",
            "a b == 3",
            ".a == 1",
            "a..b == 1",
        ),
        *(
            "tpot < fast",
            "tpot < true",
            "tpot >= null",
            "tpot < 3 parsec",
            "tpot < 1e999 s",
            "tpot < 1e999",
            "tpot == 9" + "9" * 40,
        ),
        *(
            "tpot within of 3",
            "tpot within x% of 3",
            "tpot within 1.2.3% of 3",
            "tpot within 5% of much",
            "tpot within 5% of 3 4",
        ),
        *("tpot == 'open", "tpot == a b", "tpot == 2024-01-01", "tpot < .e5 ms"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadExpectation):
        parse_expectation(text, 1)


@given(st.text(alphabet="ab.<>=!0123456789 %'\"msMiB-+ewithinof", max_size=60))
def test_any_text_is_an_expectation_or_a_refusal(text: str) -> None:
    try:
        expectation = parse_expectation(text, 1)
    except BadExpectation:
        return
    assert all(expectation.path)
