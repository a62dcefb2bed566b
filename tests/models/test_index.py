"""The index of a sharded checkpoint: read, refused, and compared with the headers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models.checkpoint import open_checkpoint
from hfbench.models.columns import TensorColumns
from hfbench.models.index import SAFETENSORS_INDEX, BadIndex, misplaced, missing_shards, read_index


def write(folder: Path, **content: Any) -> None:
    (folder / SAFETENSORS_INDEX).write_text(json.dumps(content))


def test_shards_and_totals_are_read(sharded: Path) -> None:
    index = read_index(sharded)
    assert index.shards == ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    assert (index.total_size, index.problems) == (672, ())
    assert index.weight_map()["lm_head.weight"] == "model-00002-of-00002.safetensors"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}", "index_bad"),
        ('{"weight_map": []}', "index_bad"),
        ('{"weight_map": null}', "index_bad"),
        ("[]", "index_bad"),
        (json.dumps({"weight_map": {str(n): f"{n}.safetensors" for n in range(10_001)}}), "index_bad"),
        ('{"weight_map": {}} {}', "index_bad"),
        ("version https://git-lfs.github.com/spec/v1\nsize 3\n", "lfs_pointer"),
    ],
    ids=lambda each: each[:12],
)
def test_what_is_no_index_is_refused(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / SAFETENSORS_INDEX).write_text(text)
    with pytest.raises(BadIndex) as caught:
        read_index(tmp_path)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("../x.safetensors", "index_path_escape"),
        ("/etc/passwd", "index_path_escape"),
        ("a/../../x.safetensors", "index_path_escape"),
        ("..\\x.safetensors", "index_path_escape"),
        ("", "index_bad"),
        (".", "index_bad"),
        ("a\0b.safetensors", "index_bad"),
        (None, "index_bad"),
        (7, "index_bad"),
        (["x"], "index_bad"),
        ({"x": "y"}, "index_bad"),
    ],
)
def test_an_entry_that_names_no_file_of_the_folder_is_dropped_and_told(tmp_path: Path, file: Any, code: str) -> None:
    write(tmp_path, metadata={}, weight_map={"a": "good.safetensors", "b": file})
    index = read_index(tmp_path)
    assert index.shards == ("good.safetensors",)
    assert index.weight_map() == {"a": "good.safetensors"}
    assert [problem.code for problem in index.problems] == [code]


def test_nothing_outside_the_folder_is_read(sharded: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.safetensors"
    outside.write_bytes((sharded / "model-00002-of-00002.safetensors").read_bytes())
    write(sharded, weight_map={"lm_head.weight": "../outside.safetensors"})
    checkpoint = open_checkpoint(sharded)
    assert "index_path_escape" in {problem.code for problem in checkpoint.problems}
    assert "../outside.safetensors" not in checkpoint.columns.shards


@pytest.mark.parametrize(("total", "said"), [("672", None), (-1, None), (True, None), ([], None), (672.0, 672)])
def test_a_total_of_a_wrong_type_is_a_warning(
    sharded: Path, edit_json: Callable[..., None], total: Any, said: Any
) -> None:
    edit_json(sharded / SAFETENSORS_INDEX, metadata={"total_size": total})
    index = read_index(sharded)
    assert index.total_size == said
    assert [problem.code for problem in index.problems] == ([] if said else ["index_total_size"])


def test_all_missing_files_are_told_with_tensors_and_bytes(sharded: Path) -> None:
    index = read_index(sharded)
    problems = missing_shards(index, ["model-00001-of-00002.safetensors"], 384)
    assert [problem.where for problem in problems] == ["model-00002-of-00002.safetensors"]
    assert "2 tensors" in problems[0].found
    assert "288 bytes" in problems[0].found


def test_ghosts_strays_and_unlisted_tensors_are_told(tmp_path: Path) -> None:
    columns = TensorColumns()
    columns.add_shard("a.safetensors", [("x", "F32", (1,), 0, 4), ("y", "F32", (1,), 4, 8)])
    columns.add_shard("b.safetensors", [("z", "F32", (1,), 0, 4)])
    write(tmp_path, weight_map={"x": "b.safetensors", "ghost": "a.safetensors", "z": "b.safetensors"})
    codes = {problem.code for problem in misplaced(read_index(tmp_path), columns)}
    assert codes == {"index_tensor_absent", "index_wrong_shard", "index_unlisted"}


names = st.text(st.characters(codec="utf-8"), max_size=8)
files = st.sampled_from(["a.safetensors", "b.safetensors", ": .safetensors", "ü.safetensors"])


@settings(deadline=None)
@given(st.dictionaries(names, files, max_size=6), st.sampled_from([None, 2, 4]), st.booleans(), st.booleans())
def test_any_spelling_gives_the_map_and_agrees_with_itself(
    tmp_path_factory: pytest.TempPathFactory,
    weight_map: dict[str, str],
    indent: int | None,
    ascii_only: bool,
    order: bool,
) -> None:
    folder = tmp_path_factory.mktemp("index")
    text = json.dumps({"weight_map": weight_map}, indent=indent, ensure_ascii=ascii_only, sort_keys=order)
    (folder / SAFETENSORS_INDEX).write_text(text, "utf-8")
    index = read_index(folder)
    assert index.weight_map() == weight_map
    assert set(index.shards) == set(weight_map.values())
    columns = TensorColumns()
    for shard in index.shards:
        mine = [name for name, file in weight_map.items() if file == shard]
        columns.add_shard(shard, [(name, "U8", (1,), place, place + 1) for place, name in enumerate(mine)])
    assert misplaced(index, columns) == []
    columns.add_shard("c.safetensors", [("extra-tensor", "U8", (1,), 0, 1)])
    assert [problem.code for problem in misplaced(index, columns)] == ["index_unlisted"]


def test_broken_text_between_usual_entries_is_found_out(tmp_path: Path) -> None:
    (tmp_path / SAFETENSORS_INDEX).write_text('{"weight_map": {"x": "a.safetensors" "y": "a.safetensors"}}')
    with pytest.raises(BadIndex):
        misplaced(read_index(tmp_path), TensorColumns())
    assert "index_bad" in {problem.code for problem in open_checkpoint(tmp_path).problems}


@pytest.mark.parametrize("given", [{}, {"metadata": None}, {"metadata": []}, {"metadata": "x"}], ids=str)
def test_an_index_without_metadata_is_read_and_told(tmp_path: Path, given: dict[str, Any]) -> None:
    write(tmp_path, weight_map={"a": "good.safetensors"}, **given)
    index = read_index(tmp_path)
    assert [(each.code, each.severity) for each in index.problems] == [("index_metadata", "warning")]
    assert "transformers stops there, vLLM reads the weights" in index.problems[0].found
    assert index.shards == ("good.safetensors",)
