"""diff: exit codes as of diff(1), JSON that is JSON, lines that hide nothing added or removed."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from hfbench.actions.diff import Diff, DiffResult
from hfbench.actions.registry import find
from hfbench.actions.results import result_data
from hfbench.codec import decode
from hfbench.errors import UsageError
from hfbench.jobs.run import Run


def model(folder: Path, tensors: dict[str, list[float]], **config: Any) -> Path:
    folder.mkdir()
    header, data = {}, b""
    for name, values in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    return folder


def diff(a: Path, b: Path, **options: Any) -> DiffResult:
    return Diff(a=str(a), b=str(b), **options).perform(Run())


def test_the_declaration_is_inline_with_two_positional_models() -> None:
    spec = find("diff")
    assert spec.inline
    assert [param.name for param in spec.params if param.positional] == ["a", "b"]


def test_exit_is_0_for_the_same_1_for_different_2_for_trouble(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", {"w": [1.0]}), model(tmp_path / "b", {"w": [2.0]})
    assert (diff(a, a).exit, diff(a, a).headline) == (0, "same")
    assert diff(a, b).exit == 0
    assert diff(a, b).lines()[3] == "values     not compared (--values reads them)"
    assert (diff(a, b, values=True).exit, diff(a, b, values=True).headline) == (1, "different: 1 values")
    (b / "model.safetensors").write_bytes(b"")
    broken = diff(a, b)
    assert (broken.exit, broken.failed, broken.headline) == (2, True, "trouble: 1 removed, 1 problem")
    assert any(line.startswith("problems   x B: model.safetensors: the file is empty") for line in broken.lines())


def test_a_side_that_is_not_there_is_trouble_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        diff(model(tmp_path / "a", {}), tmp_path / "nowhere")


def test_added_and_removed_are_told_in_full_whatever_else_differs(tmp_path: Path) -> None:
    layers = {f"layers.{number}.w": [1.0] for number in range(40)}
    a = model(tmp_path / "a", {**layers, **{f"x{n}": [1.0] for n in range(30)}}, **{f"k{n}": 1 for n in range(50)})
    b = model(tmp_path / "b", {"y": [1.0]})
    lines = diff(a, b, values=True).lines()
    text = "\n".join(lines)
    assert "added      + y  F32 1" in lines
    assert "40 x layers.*.w  F32 1" in text
    assert all(f"- x{number}  F32 1" in text for number in range(30))
    assert "and 42 more (--json lists all)" in text


def test_lines_fit_a_terminal_and_hold_no_control_character(tmp_path: Path) -> None:
    name = "model.\x1b[2J" + "n" * 300
    a = model(tmp_path / "a", {name: [1.0], "r\n": [1.0], "模" * 90: [1.0]}, **{"key\x1b" * 50: "v\x07" * 100})
    b = model(tmp_path / "b", {name.removeprefix("model."): [2.0], "s\n": [1.0]}, other=["\x1b"])
    lines = diff(a, b, values=True).lines()
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert any(line.startswith("renamed    ~ 1 tensor without 'model.', such as model.") for line in lines)


def test_the_result_survives_json_with_no_nan_in_it(tmp_path: Path) -> None:
    nan = float("nan")
    a = model(tmp_path / "a", {"w": [nan, 1.0], "v": [nan], "z": [0.0]}, x=nan)
    b = model(tmp_path / "b", {"w": [nan, 1.0], "v": [1.0], "z": [1.0]}, x=1)
    result = diff(a, b, values=True)
    text = json.dumps(result_data(result), allow_nan=False)
    told = json.loads(text)
    assert [each["verdict"] for each in told["values"]] == ["equal", "differ", "differ"]
    assert told["values"][0]["cosine"] == 1.0
    assert (told["exit"], told["failed"]) == (1, True)
    assert decode(DiffResult, told).lines() == result.lines()


def test_the_command_exits_as_diff_does(hfbench: Callable[..., CompletedProcess[str]], tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", {"w": [1.0]}), model(tmp_path / "b", {"w": [2.0], "extra": [1.0]})
    assert hfbench("diff", a, a, "--values").returncode == 0
    different = hfbench("diff", a, b, "--json", "--values", "--include", "w")
    assert different.returncode == 1
    told = json.loads(different.stdout)
    assert [(each["name"], each["max_abs"]) for each in told["values"]] == [("w", 1.0)]
    assert told["added"] == []
    missing = hfbench("diff", a, tmp_path / "nowhere")
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr
