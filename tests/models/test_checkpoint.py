"""Opening weights: one set of files, and whatever is broken does not hide the rest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.models.checkpoint import open_checkpoint, read_shards
from hfbench.models.index import SAFETENSORS_INDEX

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def codes(folder: Path) -> set[str]:
    return {problem.code for problem in open_checkpoint(folder).problems}


def test_a_single_file_and_its_shards_say_the_same(single: Path, sharded: Path) -> None:
    one, many = open_checkpoint(single), open_checkpoint(sharded)
    assert (one.format, many.format) == ("safetensors", "safetensors-sharded")
    assert one.problems == many.problems == ()
    assert {each.name: each.bytes for each in one.columns} == {each.name: each.bytes for each in many.columns}
    assert one.weight_bytes == many.weight_bytes == 672
    assert [shard.name for shard in many.shards] == list(many.columns.shards)


def test_shards_come_one_by_one(sharded: Path) -> None:
    reads = list(read_shards(sharded))
    assert [(read.number, read.total) for read in reads] == [(1, 2), (2, 2)]
    assert all(read.header and not read.problem for read in reads)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (Path.unlink, "shard_missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "st_truncated"),
        (lambda path: path.write_bytes(b""), "st_too_small"),
        (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\nsize 9\n"), "lfs_pointer"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "not_regular"),
        (lambda path: (path.unlink(), path.symlink_to("gone")), "broken_symlink"),
        (lambda path: (path.unlink(), path.mkdir()), "not_regular"),
    ],
)
@pytest.mark.timeout(20)
def test_a_broken_shard_is_a_problem_and_the_other_opens(
    sharded: Path, damage: Callable[[Path], object], code: str
) -> None:
    damage(sharded / SHARDS[1])
    checkpoint = open_checkpoint(sharded)
    assert [(problem.code, problem.where) for problem in checkpoint.problems] == [(code, SHARDS[1])]
    assert checkpoint.columns.shards == [SHARDS[0]]


def test_two_sets_of_weights_are_counted_once(single: Path, sharded: Path) -> None:
    shutil.copy(single / "model.safetensors", sharded)
    (sharded / "consolidated.safetensors").write_bytes((single / "model.safetensors").read_bytes())
    checkpoint = open_checkpoint(sharded)
    assert checkpoint.weight_bytes == 672
    assert {problem.code for problem in checkpoint.problems} == {"two_weight_sets", "consolidated_beside"}


def test_shards_without_an_index_are_read_with_a_warning(sharded: Path) -> None:
    (sharded / SAFETENSORS_INDEX).unlink()
    assert open_checkpoint(sharded).weight_bytes == 672
    assert codes(sharded) == {"index_missing"}
    (sharded / SHARDS[0]).unlink()
    assert codes(sharded) == {"index_missing", "shard_missing"}


def test_a_broken_index_does_not_hide_its_shards(sharded: Path) -> None:
    (sharded / SAFETENSORS_INDEX).write_text("{")
    assert open_checkpoint(sharded).weight_bytes == 672
    assert codes(sharded) == {"index_bad", "index_missing"}


def test_a_tensor_in_two_files_is_an_error(sharded: Path) -> None:
    (sharded / SAFETENSORS_INDEX).unlink()
    shutil.copy(sharded / SHARDS[0], sharded / SHARDS[1])
    assert "tensor_twice" in codes(sharded)


@pytest.mark.parametrize(
    ("names", "kind", "code"),
    [
        ((), "none", "weights_missing"),
        (("training_args.bin",), "none", "weights_missing"),
        (("pytorch_model.bin",), "pytorch", "weights_pytorch"),
        (("q4.gguf",), "gguf", "weights_gguf"),
        (("model.onnx",), "other", "weights_other"),
    ],
)
def test_other_formats_are_named_and_not_opened(tmp_path: Path, names: tuple[str, ...], kind: str, code: str) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    for name in names:
        os.mkfifo(folder / name)  # opening one would hang
    checkpoint = open_checkpoint(folder)
    assert (checkpoint.format, [problem.code for problem in checkpoint.problems]) == (kind, [code])


def test_an_adapter_is_not_taken_for_a_model(single: Path) -> None:
    (single / "model.safetensors").rename(single / "adapter_model.safetensors")
    checkpoint = open_checkpoint(single)
    assert checkpoint.format == "adapter"
    assert [problem.code for problem in checkpoint.problems] == ["adapter_not_model"]
    assert len(checkpoint.columns) == 4


def test_consolidated_weights_are_opened_when_alone(single: Path) -> None:
    (single / "model.safetensors").rename(single / "consolidated.safetensors")
    checkpoint = open_checkpoint(single)
    assert (checkpoint.format, checkpoint.weight_bytes) == ("consolidated", 672)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("b\n.safetensors", "shard_missing"),
        ("b\x1b.safetensors", "shard_missing"),
        ("./b.safetensors", "shard_missing"),
        ("\ud800.safetensors", "index_bad"),
    ],
)
def test_a_shard_of_an_odd_name_that_is_not_there_is_an_error(
    sharded: Path, edit_json: Callable[..., None], name: str, code: str
) -> None:
    edit_json(sharded / SAFETENSORS_INDEX, weight_map={"a": SHARDS[0], "b": name})
    errors = {problem.code for problem in open_checkpoint(sharded).problems if problem.severity == "error"}
    assert code in errors
