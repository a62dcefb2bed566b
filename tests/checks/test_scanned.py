"""What the rules on values say of many tensors, of files that give out, and on a terminal."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from cases_scanned import floats
from small_model import all_of, config, make, stored

from hfbench.checks.base import rules
from hfbench.checks.finding import Finding
from hfbench.checks.run import check, report_on
from hfbench.checks.subject import Options, Subject, subject_of
from hfbench.checks.values_table import value_lines
from hfbench.models.values.facts import TensorValues, ValueScan

pytest.importorskip("numpy")

VALUES = Options(values=True)


def found(id: str, subject: Subject) -> list[Finding]:
    return list(report_on(subject, [rules()[id]]).findings)


def test_a_file_that_gives_out_is_an_error_and_the_rest_is_measured(model: Path) -> None:
    subject = subject_of(model, options=VALUES)
    assert len(subject.checkpoint.columns)
    path = model / "model.safetensors"
    os.truncate(path, path.stat().st_size - 280)
    [told] = found("HB126", subject)
    assert (told.severity, told.file) == ("error", "model.safetensors")
    assert told.message == (
        "ends before its last tensor, which leaves 3 tensors unmeasured: "
        "'model.layers.0.post_attention_layernorm.weight', 'model.norm.weight', 'lm_head.weight'"
    )
    assert subject.values
    assert (subject.values.measured, subject.values.unmeasured) == (9, 3)


def test_the_worst_tensors_are_named_first(model: Path) -> None:
    fill = {f"x{number}": struct.pack("<f", 7e4 + number) for number in range(30)}
    stored({name: ("F32", [1]) for name in fill}, fill=fill)(model)
    [told] = found("HB123", subject_of(model, options=VALUES))
    assert told.message == (
        "30 tensors hold values that float16 turns into infinities: 'x29', 'x28', 'x27' and 27 more, up to 7e+04"
    )
    assert told.evidence["count"] == 30
    assert [each["tensor"] for each in told.evidence["tensors"]][:2] == ["x29", "x28"]
    assert len(told.evidence["tensors"]) == 20


def test_of_many_tensors_with_nan_twenty_are_named_and_the_others_counted(model: Path) -> None:
    fill = {f"x{number:02d}": b"\xc0\x7f" for number in range(25)}
    stored({name: ("BF16", [1]) for name in fill}, fill=fill)(model)
    told = found("HB122", subject_of(model, options=VALUES))
    assert len(told) == 21
    assert {each.message for each in told} >= {"tensor 'x00' holds 1 NaN", "5 further tensors with NaN or Inf"}


def test_a_single_file_is_measured_too(model: Path) -> None:
    all_of(floats(1.0, float("nan")), config())(model)
    report = check(str(model / "model.safetensors"), options=VALUES)
    assert report.values
    assert report.values.nan == 1
    assert "HB122" in {each.id for each in report.findings}


def test_where_nothing_can_be_judged_there_are_no_values(tmp_path: Path) -> None:
    assert check(str(tmp_path / "gone"), options=VALUES).values is None
    assert check(str(make(tmp_path / "model"))).values is None


def test_progress_is_told_to_the_end(model: Path) -> None:
    reports: list[tuple[int, int]] = []
    report = check(str(model), options=VALUES, watch=lambda *report: reports.append(report))
    assert report.values
    assert reports[-1] == (report.values.bytes, report.values.bytes)


def values(name: str, **figures: object) -> TensorValues:
    usual = {"nan": 0, "inf": 0, "zeros": 0, "zero_fraction": 0.0, "absmax": 1.0, "absmin": 0.5, "constant": False}
    more = {**usual, **figures}
    return TensorValues(name=name, file="f", dtype="BF16", shape=(4, 2), elements=8, **more)  # type: ignore[arg-type]


def scan(*tensors: TensorValues) -> ValueScan:
    return ValueScan(
        tensors=tensors,
        left_out=0,
        measured=len(tensors),
        unmeasured=0,
        nan=0,
        inf=0,
        float16_inf=0,
        bytes=2**30,
        seconds=2.0,
    )


def test_the_table_puts_the_worst_first_and_says_what_is_wrong() -> None:
    tensors = [
        values("fine", absmax=1e6),
        values("constant", constant=True),
        values("lost", float16_zero=4),
        values("over", float16_inf=1, absmax=7e4),
        values("nan", nan=2, zeros=1, zero_fraction=0.125),
    ]
    assert value_lines(scan(*tensors)) == [
        "values  5 tensors measured, 1.00 GiB in 2.00 s, 512 MiB/s",
        "worst tensors  dtype  absmax  NaN  Inf   zero",
        "nan            BF16        1    2    0  12.5%",
        "over           BF16    7e+04    0    0     0%  float16: 1 Inf",
        "lost           BF16        1    0    0     0%  float16: 50.0% lost",
        "constant       BF16        1    0    0     0%  one value",
    ]


def test_where_nothing_is_wrong_the_largest_magnitudes_are_shown() -> None:
    lines = value_lines(scan(*(values(f"t{number}", absmax=float(number)) for number in range(9))))
    assert [line.split()[0] for line in lines[1:]] == ["largest", "t8", "t7", "t6"]
    assert value_lines(scan())[1:] == []


@pytest.mark.usefixtures("terminal")
def test_the_table_fits_a_terminal_whatever_tensors_are_called() -> None:
    names = ["\x1b[2J" * 40, "模" * 90, "a" * 300, "r\n"]
    tensors = [values(name, nan=123_456_789, inf=10**12, absmax=1e-300, zero_fraction=0.9999) for name in names]
    lines = value_lines(scan(*tensors * 3))
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert lines[-1] == "2 more; --json lists all"
