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
from hfbench.errors import HfbenchError
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
    same = diff(a, a, values=True)
    assert (same.exit, same.headline, same.values_compared) == (0, "same", True)
    unread = diff(a, b)
    assert (unread.exit, unread.headline, unread.values_compared) == (0, "same, values not compared", False)
    assert unread.lines()[-1] == "same, values not compared"
    assert diff(a, b).lines()[3] == "values     not compared (--values reads them)"
    assert (diff(a, b, values=True).exit, diff(a, b, values=True).headline) == (1, "different: 1 tensor's values")
    (b / "model.safetensors").write_bytes(b"")
    broken = diff(a, b)
    assert (broken.exit, broken.failed, broken.headline) == (2, True, "trouble: 1 unread, 1 problem")
    assert any(line.startswith("problems   x B: model.safetensors: the file is empty") for line in broken.lines())


def test_a_side_that_is_not_there_is_trouble_too(tmp_path: Path) -> None:
    with pytest.raises(HfbenchError, match="there is no such folder") as caught:
        diff(model(tmp_path / "a", {}), tmp_path / "nowhere")
    assert caught.value.exit == 2


def test_added_and_removed_are_told_in_full_whatever_else_differs(tmp_path: Path) -> None:
    layers = {f"layers.{number}.w": [1.0] for number in range(40)}
    a = model(tmp_path / "a", {**layers, **{f"x{n}": [1.0] for n in range(30)}}, **{f"k{n}": 1 for n in range(50)})
    b = model(tmp_path / "b", {"y": [1.0]})
    lines = diff(a, b, values=True).lines()
    text = "\n".join(lines)
    assert "added      + y  F32 1" in lines
    assert "40 x layers.{0-39}.w  F32 1" in text
    assert all(f"- x{number}  F32 1" in text for number in range(30))
    assert "and 18 more (--json lists all)" in text


@pytest.mark.usefixtures("terminal")
def test_lines_fit_a_terminal_and_hold_no_control_character(tmp_path: Path) -> None:
    name = "model.\x1b[2J" + "n" * 300
    a = model(tmp_path / "a", {name: [1.0], "r\n": [1.0], "模" * 90: [1.0]}, **{"key\x1b" * 50: "v\x07" * 100})
    b = model(tmp_path / "b", {name.removeprefix("model."): [2.0], "s\n": [1.0]}, other=["\x1b"])
    lines = diff(a, b, values=True).lines()
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert any(line.startswith("renamed    ~ model.") and line.endswith("(model.=)") for line in lines)


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


def test_rules_may_be_given_again_and_again(hfbench: Callable[..., CompletedProcess[str]], tmp_path: Path) -> None:
    a = model(tmp_path / "a", {"h.0.attn.w": [1.0], "x,y": [1.0]})
    b = model(tmp_path / "b", {"layers.0.self_attn.w": [1.0], "z": [1.0]})
    found = hfbench("diff", a, b, "--rename", "h=layers", "--rename", 'attn=self_attn,"x,y=z"', "--json")
    assert found.returncode == 1
    told = json.loads(found.stdout)
    assert [(each["a"], each["b"], each["by"]) for each in told["renamed"]] == [
        ("h.0.attn.w", "layers.0.self_attn.w", "rule"),
        ("x,y", "z", "rule"),
    ]
    wrong = hfbench("diff", a, b, "--rename", "nothing")
    assert wrong.returncode == 2
    assert "rename: the rule 'nothing' has no '='. Write OLD=NEW" in wrong.stderr


def test_a_clash_a_rule_and_what_is_unread_stand_in_lines(tmp_path: Path) -> None:
    a = model(tmp_path / "a", {"model.w": [1.0], "module.w": [1.0], "old.v": [1.0]})
    b = model(tmp_path / "b", {"w": [1.0], "new.v": [1.0]})
    lines = diff(a, b, rename=("old=new",)).lines()
    assert "renamed    ~ old.v -> new.v (old=new)" in lines
    assert "clash      ? w: 2 tensors of A, such as model.w and 1 tensor of B, such as w" in lines
    (b / "model.safetensors").write_bytes(b"")
    assert "           ? old.v  F32 1" in diff(a, b).lines()


def test_a_template_is_told_line_by_line(tmp_path: Path) -> None:
    folders = [model(tmp_path / name, {}) for name in "ab"]
    for folder, line in zip(folders, ("{{ m }}", "{{ m.x }}"), strict=True):
        (folder / "chat_template.jinja").write_text(f"one\n{line}\nthree")
    lines = [line[11:] for line in diff(*folders).lines()]
    at = lines.index("-{{ m }}")
    assert lines[at - 1 : at + 3] == [" one", "-{{ m }}", "+{{ m.x }}", " three"]


@pytest.mark.usefixtures("terminal")
def test_no_number_is_ever_cut_however_long_the_names_are(tmp_path: Path) -> None:
    name = "n" * 300
    a, b = (
        model(tmp_path / "a", {name: [1.0, 3.0], "m" + name: [1.0]}),
        model(tmp_path / "b", {name: [1.5, 3.0], "m" + name: [1.0, 2.0]}),
    )
    lines = diff(a, b, values=True).lines()
    assert any(line.startswith("                    max 0.5 rel 0.158 cos 0.98") for line in lines)
    assert any(line.startswith("shape      ~ 1 -> 2  m") for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_a_group_of_values_names_its_layers_and_hides_no_member(tmp_path: Path) -> None:
    nan = float("nan")
    weights = {f"model.layers.{n}.self_attn.q_proj.weight": [1.0, 2.0, 4.0, 8.0] for n in (0, 3, 4, 5, 9)}
    other = {name: list(values) for name, values in weights.items()}
    for number, values in ((3, [1.0, 2.0, 4.0, 9.0]), (4, [1.5, 2.0, 4.0, 8.0]), (9, [nan, nan, nan, 8.0])):
        other[f"model.layers.{number}.self_attn.q_proj.weight"] = values
    lines = diff(model(tmp_path / "a", weights), model(tmp_path / "b", other), values=True).lines()
    at = lines.index("           differ   3 x model.layers.{3-4,9}.self_attn.q_proj.weight")
    assert lines[at + 1] == "                    max 1 rel 0.108 cos 0.998567, 3 not finite"


def test_nested_keys_are_told_by_path_and_with_their_values(tmp_path: Path) -> None:
    a, b = model(tmp_path / "a", {}), model(tmp_path / "b", {}, foo={"b": {"x": 1}, "c": [1, {"y": None}]})
    told = json.loads(json.dumps(result_data(diff(a, b))))["config"]
    assert [(each["key"], each["b"]) for each in told] == [("foo.b.x", 1), ("foo.c", '[1, {"y": null}]')]
    assert "config     - config.json: foo.b.x: 1" in diff(b, a).lines()


def test_a_job_keeps_the_beginnings_of_long_lists_and_writes_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hfbench.actions.diff.MOST_KEPT", 2)
    a = model(tmp_path / "a", {f"w{n}": [float(n)] for n in range(5)})
    b = model(tmp_path / "b", {f"w{n}": [float(n) + n / 100] for n in range(5)})
    (tmp_path / "job").mkdir()
    found = Diff(a=str(a), b=str(b), values=True).perform(Run(directory=tmp_path / "job"))
    assert len(found.values or ()) == 2
    assert {each.verdict for each in found.values or ()} == {"differ"}
    assert (found.counts["differ"], found.headline) == (4, "different: 4 tensors' values")
    assert found.lines() == decode(DiffResult, result_data(found)).lines()
    assert any(line.startswith("all") for line in found.lines())
    whole = decode(DiffResult, json.loads(Path(found.whole).read_text()))
    assert [each.name for each in whole.values or ()] == [f"w{n}" for n in range(5)]
    assert diff(a, b, values=True).whole == ""
