"""Resolution: which weight files each runtime reads, which it passes over, and what stops it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.models.resolution.resolve import Resolution, trace_model
from hfbench.models.resolution.trace import Step
from hfbench.models.resolution.verdicts import Verdict

INDEX = "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def pair(folder: Path) -> tuple[Verdict, Verdict]:
    found = trace_model(str(folder))
    return found.runtimes["transformers"], found.runtimes["vllm"]


def step(found: Resolution, name: str) -> Step:
    return next(each for each in found.steps if each.step == name)


def test_a_single_file_is_read_by_all(single: Path) -> None:
    found = trace_model(str(single))
    assert all(verdict.files == ("model.safetensors",) for verdict in found.runtimes.values())
    assert all(verdict.loads and verdict.judged == "weights" for verdict in found.runtimes.values())


def test_an_index_is_followed_by_both(sharded: Path) -> None:
    assert all(verdict.loads and verdict.files == SHARDS for verdict in pair(sharded))


def test_a_single_file_beats_the_index_in_transformers_and_loses_in_vllm(
    sharded: Path, first: object, file_of: Callable[..., bytes]
) -> None:
    (sharded / "model.safetensors").write_bytes(file_of(first))
    transformers, vllm = pair(sharded)
    assert transformers.files == ("model.safetensors",)
    assert set(transformers.ignored) == set(SHARDS)
    assert vllm.files == SHARDS
    assert vllm.ignored == ("model.safetensors",)


def test_shards_without_an_index_load_in_vllm_alone(sharded: Path) -> None:
    (sharded / INDEX).unlink()
    transformers, vllm = pair(sharded)
    assert not transformers.loads
    assert f"no model.safetensors and no {INDEX}" in transformers.reason
    assert vllm.loads
    assert vllm.files == SHARDS


def test_strays_are_read_by_vllm_when_no_index_narrows_it(single: Path, file_of: Callable[..., bytes]) -> None:
    (single / "adapter_model.safetensors").write_bytes(file_of({}))
    transformers, vllm = pair(single)
    assert transformers.files == ("model.safetensors",)
    assert vllm.files == ("adapter_model.safetensors", "model.safetensors")


def test_a_missing_shard_stops_every_runtime_and_is_named(sharded: Path) -> None:
    (sharded / SHARDS[1]).unlink()
    for verdict in trace_model(str(sharded)).runtimes.values():
        assert not verdict.loads
        assert f"{SHARDS[1]!r} is not there" in verdict.reason


@pytest.mark.parametrize("target", ["../single/model.safetensors", "/etc/passwd"])
def test_an_index_that_leaves_the_folder_is_a_security_alarm(sharded: Path, target: str) -> None:
    index = json.loads((sharded / INDEX).read_text())
    index["weight_map"]["lm_head.weight"] = target
    (sharded / INDEX).write_text(json.dumps(index))
    found = trace_model(str(sharded))
    assert "security: weight_map leads outside" in found.runtimes["transformers"].reason
    assert not found.runtimes["vllm"].loads
    assert step(found, "weights").state == "error"
    assert not any(target in file for verdict in found.runtimes.values() for file in verdict.files)


@pytest.mark.parametrize("text", ["{}", '{"weight_map": []}', '{"weight_map": {"a": null}}', "{", ""])
def test_a_broken_index_stops_both(sharded: Path, text: str) -> None:
    (sharded / INDEX).write_text(text)
    assert not any(verdict.loads for verdict in pair(sharded))


def test_a_broken_header_stops_whoever_reads_the_file(single: Path) -> None:
    (single / "model.safetensors").write_bytes(b"\xff\0\0\0\0\0\0\0{}")
    assert all(verdict.reason.startswith("model.safetensors: ") for verdict in pair(single))


def test_a_fifo_and_a_dangling_link_are_never_opened(single: Path) -> None:
    (single / "model.safetensors").unlink()
    os.mkfifo(single / "model.safetensors")
    assert all("a FIFO" in verdict.reason for verdict in pair(single))
    (single / "model.safetensors").unlink()
    (single / "model.safetensors").symlink_to("../nowhere")
    assert all("where nothing is" in verdict.reason for verdict in pair(single))


def test_a_consolidated_file_deep_below_stops_vllm(single: Path) -> None:
    (single / "sub" / "deep").mkdir(parents=True)
    shutil.copy(single / "model.safetensors", single / "sub" / "deep" / "consolidated.safetensors")
    transformers, vllm = pair(single)
    assert transformers.loads
    assert "'sub/deep/consolidated.safetensors'" in vllm.reason
    assert "cannot find any model weights" in vllm.reason


def test_pickled_weights_are_found_and_training_leftovers_are_not_weights(single: Path) -> None:
    (single / "model.safetensors").unlink()
    (single / "pytorch_model.bin").write_bytes(b"x")
    (single / "training_args.bin").write_bytes(b"x")
    transformers, vllm = pair(single)
    assert transformers.files == vllm.files == ("pytorch_model.bin",)


def test_gguf_alone_is_told_how_to_give_it(single: Path) -> None:
    (single / "model.safetensors").unlink()
    (single / "model.gguf").write_bytes(b"GGUF")
    transformers, vllm = pair(single)
    assert "gguf_file=" in transformers.reason
    assert "given by its own name" in vllm.reason


def test_an_adapter_taken_for_weights_is_told(single: Path) -> None:
    (single / "model.safetensors").rename(single / "adapter_model.safetensors")
    told = step(trace_model(str(single)), "weights")
    assert told.state == "error"
    assert "is an adapter, not a model" in told.why


def test_weights_that_transformers_weights_names_are_taken(single: Path, edit_json: Callable[..., None]) -> None:
    (single / "model.safetensors").rename(single / "other.safetensors")
    edit_json(single / "config.json", transformers_weights="other.safetensors")
    assert pair(single)[0].files == ("other.safetensors",)
    edit_json(single / "config.json", transformers_weights="../x.safetensors")
    assert "which is not there" in pair(single)[0].reason


@pytest.mark.parametrize(
    ("tied", "names", "state", "told"),
    [
        (True, ["model.embed_tokens.weight", "lm_head.weight"], "note", "compare the two"),
        (True, ["model.embed_tokens.weight"], "ok", "the embedding serves as head"),
        (False, ["model.embed_tokens.weight", "lm_head.weight"], "ok", ""),
        (False, ["model.embed_tokens.weight"], "error", "random head"),
    ],
)
def test_the_output_head_is_held_against_the_configuration(
    single: Path,
    edit_json: Callable[..., None],
    file_of: Callable[..., bytes],
    tied: bool,
    names: list[str],
    state: str,
    told: str,
) -> None:
    edit_json(single / "config.json", tie_word_embeddings=tied)
    (single / "model.safetensors").write_bytes(file_of(dict.fromkeys(names, ("BF16", (16, 8), 256))))
    head = step(trace_model(str(single)), "output head")
    assert head.state == state
    assert told in head.why


def test_dtype_comes_from_the_headers_when_no_key_tells_it(single: Path, edit_json: Callable[..., None]) -> None:
    edit_json(single / "config.json", torch_dtype=None)
    told = step(trace_model(str(single)), "dtype").found
    assert told == "float32 (what bfloat16 and float32 of the headers have in common)"


def test_a_mistral_tokenizer_needs_both_its_file_and_consolidated_weights(single: Path) -> None:
    (single / "tekken.json").write_text("{}")
    assert "Mistral's own" not in step(trace_model(str(single)), "tokenizer").found
    shutil.copy(single / "model.safetensors", single / "consolidated.safetensors")
    assert "Mistral's own" in step(trace_model(str(single)), "tokenizer").found
