"""inspect: facts of a model for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hfbench.actions.inspect import Inspect, InspectResult
from hfbench.actions.registry import find
from hfbench.cli import main
from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run
from hfbench.models.reference import NotFound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tiny"
    made.mkdir()
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "hidden_size": 8}
    (made / "config.json").write_text(json.dumps(config))
    header = b'{"w.\\u001b[2J":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
    (made / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(24))
    return made


def inspect(folder: Path) -> InspectResult:
    return Inspect(model=str(folder)).perform(Run())


def test_the_declaration_is_inline_with_a_positional_model() -> None:
    spec = find("inspect")
    assert spec.inline
    assert [param.name for param in spec.params if param.positional] == ["model"]
    assert spec.param("model").kind == "model"


def test_the_result_has_the_fields_that_others_rely_on(folder: Path) -> None:
    told = encode(inspect(folder))
    assert told["model"] == "tiny"
    assert told["format"] == "safetensors"
    assert (told["files"], told["tensors"], told["parameters"], told["weight_bytes"]) == (2, 1, 6, 24)
    assert told["dtypes"] == {"F32": {"tensors": 1, "elements": 6, "bytes": 24}}
    assert told["config"]["model_type"] == "llama"
    assert told["failed"] is False
    assert decode(InspectResult, json.loads(json.dumps(told))) == inspect(folder)


@pytest.mark.usefixtures("terminal")
def test_the_lines_fit_a_terminal_and_hold_no_control_character(folder: Path) -> None:
    long_name = "x" * 300
    (folder / long_name[:200]).mkdir()
    lines = inspect(folder).lines()
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert len(lines) <= 24
    text = "\n".join(lines)
    assert "LlamaForCausalLM (llama)" in text
    assert "\\x1b[2J" in text


def test_an_error_in_the_folder_fails_the_result_but_tells_the_rest(folder: Path) -> None:
    (folder / "config.json").write_text("[]")
    result = inspect(folder)
    assert result.failed
    assert result.tensors == 1
    assert any(line.startswith("problems   x config.json: the root is a list") for line in result.lines())


def test_many_problems_are_cut_short(folder: Path) -> None:
    for number in range(1, 41):
        (folder / f"model-{number:05d}-of-00040.safetensors").write_bytes(b"")
    (folder / "model.safetensors").unlink()
    lines = inspect(folder).lines()
    assert len(lines) <= 24
    assert "more (--json lists all)" in lines[-1]


def test_nothing_to_inspect_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        inspect(tmp_path / "nowhere")


def test_a_file_of_weights_is_told_alone_and_an_index_with_its_folder(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {}, "metadata": {}}))
    shard = inspect(folder / "model.safetensors")
    assert (shard.model, shard.files, shard.tensors, shard.parameters) == ("model.safetensors", 1, 1, 6)
    assert (shard.model_type, shard.problems, shard.failed) == (None, (), False)
    assert inspect(folder / "model.safetensors.index.json").model == "tiny"


@pytest.mark.parametrize("words", ["check", "inspect", "fit --gpu H100", "resolve", "files", "explain", "chat"])
def test_what_is_not_there_has_one_exit_code(words: str, tmp_path: Path) -> None:
    name, *rest = words.split()
    for gone in (tmp_path / "gone", tmp_path):
        try:
            code = main([name, str(gone), *rest])
        except HfbenchError as error:
            code = int(error.exit)
        assert code == 2
