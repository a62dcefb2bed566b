"""docs/kernels.md: the file it shows is a kernel that is right, and its tables name what there is."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import get_args

import pytest
from kernel_files import write

from hfbench.gpu.kernels.declaration import Kernel
from hfbench.gpu.kernels.interpret import interpret_all
from hfbench.gpu.kernels.loading import read
from hfbench.gpu.kernels.results import CheckVerdict, StaticRow, StaticVerdict

PAGE = (Path(__file__).parents[3] / "docs" / "kernels.md").read_text(encoding="utf-8")


def test_the_file_on_the_page_is_a_kernel_that_is_right(tmp_path: Path) -> None:
    for package in ("torch", "triton"):
        pytest.importorskip(package)
    source, *_ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    report = interpret_all(read(write(tmp_path, source)), seconds=60)
    assert report.kernel == "axpy"
    assert [row.verdict for row in report.rows] == ["ok"] * 18, [row.reason for row in report.rows]


def test_the_page_names_every_field_and_verdict() -> None:
    fields = {field.name for field in dataclasses.fields(Kernel)} - {"name"}
    assert {name for name in fields if f"`{name}" not in PAGE} == set()
    told = {field.name for field in dataclasses.fields(StaticRow)}
    shown = told - {
        "kernel",
        "config",
        "dtype",
        "arch",
        "warps",
        "stages",
        "spill_loads",
        "matrix",
        "seconds",
        "cached",
    }
    assert {name for name in shown if f"`{name}`" not in PAGE} == set()
    verdicts = {*get_args(CheckVerdict), *get_args(StaticVerdict)}
    assert {verdict for verdict in verdicts if f"`{verdict}`" not in PAGE} == set()
