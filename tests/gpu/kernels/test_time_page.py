"""docs/tuning.md: its program runs, and its tables name every verdict, field and part of the key."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

from hfbench.gpu.kernels.timing_results import Subject, TimeRow, TimeVerdict
from hfbench.gpu.kernels.tuned import Choice, Key, TunedRow, bucket_of, save

PAGE = (Path(__file__).parents[3] / "docs" / "tuning.md").read_text(encoding="utf-8")
BENCH = (Path(__file__).parents[3] / "bench" / "README.md").read_text(encoding="utf-8")


def test_the_program_on_the_page_finds_what_was_tuned(tmp_path: Path) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    words = [sys.executable, "-c", source]
    nothing = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert nothing.stdout == ""
    shape = {"R": 3000, "C": 8192}
    key = Key(kernel="softmax", source="3f9a", triton="3.9.0", capability="9.0", dtype="bf16", bucket=bucket_of(shape))
    choice = Choice(label="BLOCK=8192 w8 s3", constants={"BLOCK": 8192}, num_warps=8, num_stages=3)
    save(tmp_path / "tuned.json", key, [TunedRow(choice=choice, shape=shape, bench="cuda", verdict="ok", seconds=1.0)])
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout == "BLOCK=8192 w8 s3 {'BLOCK': 8192, 'num_warps': 8, 'num_stages': 3}\n"


def test_the_page_names_every_field_and_verdict() -> None:
    fields = {field.name for field in dataclasses.fields(TimeRow)} - {"kernel", "config", "dtype", "shape"}
    words = {*fields, *get_args(Subject), *get_args(TimeVerdict)}
    assert {word for word in words if f"`{word}`" not in PAGE} == set()


def test_the_page_of_measurements_names_every_part() -> None:
    script = (Path(__file__).parents[3] / "bench" / "gpu.py").read_text(encoding="utf-8")
    parts = {
        "decode-*" if name.startswith("decode-") else name for name in re.findall(r'Part\(name="([\w-]+)"', script)
    }
    parts |= set(re.findall(r'^    Part\(\n        name="([\w-]+)"', script, re.MULTILINE))
    assert len(parts) >= 11
    assert {part for part in parts if f"`{part}`" not in BENCH} == set()
