"""kernel.check's room: every fault is named, none ends more than its own case, and the library is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_files import ZOO, line_of, write

from hfbench.errors import UsageError
from hfbench.gpu.kernels.interpret import MOST_LATE, SKIPPED, interpret_all
from hfbench.gpu.kernels.loading import find, read, shipped
from hfbench.gpu.kernels.results import CheckRow

pytest.importorskip("torch")
pytest.importorskip("triton")

pytestmark = pytest.mark.usefixtures("forked_crews")


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory, forked_crews: None) -> tuple[Path, dict[str, CheckRow]]:
    """The file of faults, and its row by fault."""
    path = write(tmp_path_factory.mktemp("zoo"), ZOO)
    report = interpret_all(read(path), seconds=2, workers=1)
    return path, {row.config.partition(" ")[0]: row for row in report.rows}


def test_a_kernel_that_is_right_is_ok(zoo: tuple[Path, dict[str, CheckRow]]) -> None:
    row = zoo[1]["none"]
    assert (row.verdict, row.reason, row.max_abs, row.shape, row.dtype) == ("ok", "", 0.0, {"N": 50}, "fp32")


@pytest.mark.parametrize(
    ("fault", "verdict", "reason"),
    [
        ("past", "out-of-bounds", "stores between the rows of y: 3 elements"),
        ("before", "out-of-bounds", "stores before the start of y: 5 elements, the farthest 5 beyond"),
        (
            "wild",
            "out-of-bounds",
            "stores 99,999,893 elements past the end of y, far from every argument, at line LINE",
        ),
        ("rows", "out-of-bounds", "stores between the rows of y: 1 element"),
        ("input", "out-of-bounds", "stores into x, which is no output: 50 elements"),
        ("load", "out-of-bounds", "loads past the end of x: 14 elements, the farthest 14 beyond"),
        ("unwritten", "differs", "2 of 100 elements differ by more than is allowed; 2 were never written"),
        ("nan", "differs", "is nan, the reference"),
        ("raises", "error", "NameError: name 'nothing_of_this_name' is not defined, at line LINE"),
        ("segfault", "crash", "the process ended by SIGSEGV, at line LINE"),
        ("exit", "crash", "the process ended by exit status 5"),
        ("exits", "error", "SystemExit: 3, at line LINE"),
        ("loop", "timeout", "still running after 2.00 s, at line "),
    ],
)
def test_a_fault_is_named(zoo: tuple[Path, dict[str, CheckRow]], fault: str, verdict: str, reason: str) -> None:
    path, rows = zoo
    marks = {"wild": "100000000, values", "raises": "values + nothing", "segfault": "string_at", "exits": "sys.exit"}
    expected = reason.replace("LINE", str(line_of(path, marks[fault]))) if fault in marks else reason
    assert rows[fault].verdict == verdict, rows[fault]
    assert expected in rows[fault].reason


def test_how_far_a_wrong_value_is_apart_is_told_with_its_place(zoo: tuple[Path, dict[str, CheckRow]]) -> None:
    row = zoo[1]["differs"]
    assert row.verdict == "differs"
    assert row.output == "y"
    assert row.where[0] == 0
    assert row.max_rel == pytest.approx(0.5)
    assert row.max_abs
    assert row.worst
    assert row.worst > 1
    assert "50 of 100 elements differ by more than is allowed" in row.reason


def test_wild_loads_and_atomic_updates_are_seen_too(zoo: tuple[Path, dict[str, CheckRow]]) -> None:
    assert zoo[1]["far"].verdict == zoo[1]["atomic"].verdict == "out-of-bounds"
    assert "loads " in zoo[1]["far"].reason
    assert "between the rows of y" in zoo[1]["atomic"].reason or "updates" in zoo[1]["atomic"].reason


def test_a_damaged_heap_ends_one_case_alone(zoo: tuple[Path, dict[str, CheckRow]]) -> None:
    assert zoo[1]["heap"].verdict == "crash"
    assert zoo[1]["heap"].reason.startswith(("the process ended by SIGABRT", "the process ended by SIGSEGV"))
    assert zoo[1]["prints"].verdict == "ok", "what a file prints is no answer"


def test_a_kernel_that_always_hangs_is_given_up(tmp_path: Path) -> None:
    path = write(tmp_path, ZOO, ('while FAULT == "loop":', "while n > 0:"))
    rows = interpret_all(read(path), seconds=1, workers=1).rows
    assert [row.verdict for row in rows].count("timeout") == MOST_LATE
    assert rows[-1].verdict == "skipped"
    assert rows[-1].reason == SKIPPED


ONE_EACH = {
    "matmul": "64x64x32",
    "rmsnorm": "8192 w8",
    "softmax": "8192",
    "add_rmsnorm": "8192 w8",
    "rope": "HALF=64,HEADS=8",
    "silu_mul": "4096",
    "penalties": "4096",
    "top_k_top_p": "4096 w8",
    "dequant_int4": "WORDS=8,COLUMNS=128",
    "dequant_fp8": "32x128",
}
"""A configuration of each kernel that most of its problems fit."""


@pytest.mark.parametrize("name", shipped())
def test_the_library_is_right_in_every_element_type(name: str) -> None:
    report = interpret_all(find(name), config=ONE_EACH[name], seconds=120)
    assert {row.verdict for row in report.rows} == {"ok"}, [row for row in report.rows if row.verdict != "ok"]
    assert {row.dtype for row in report.rows} >= {"fp16", "bf16", "fp32"}
    told = {row.reason for row in report.rows if row.dtype == "bf16"}
    assert name != "matmul" or "the interpreter computes bf16 on its bit patterns" in told.pop()


def test_what_a_kernel_does_not_declare_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no configuration is called 'BLOCK=9'\. There are BLOCK=64 w4 s3"):
        interpret_all(read(write(tmp_path)), config="BLOCK=9")
