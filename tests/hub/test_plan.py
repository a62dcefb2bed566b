"""Which files a runtime needs."""

from __future__ import annotations

import hashlib

import pytest

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.facts import HubFile
from hfbench.hub.plan import plan, quant_of

SHARDED = [
    "config.json",
    "tokenizer.json",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors.index.json",
]


def files(*paths: str) -> list[HubFile]:
    return [HubFile(path, len(path), hashlib.sha1(path.encode()).hexdigest()) for path in paths]


def chosen(*paths: str, **wish: object) -> set[str]:
    return {each.path for each in plan(files(*paths), **wish).files}  # type: ignore[arg-type]


def test_safetensors_leave_the_same_weights_in_other_formats_behind() -> None:
    others = ["pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack"]
    assert chosen(*SHARDED, *others, "onnx/model.onnx", "model-q4_k_m.gguf") == set(SHARDED)


def test_bin_is_taken_only_where_a_folder_has_no_safetensors() -> None:
    paths = ["config.json", "pytorch_model.bin", "training_args.bin", "optimizer.pt"]
    assert chosen(*paths) == {"config.json", "pytorch_model.bin"}
    mixed = ["model.safetensors", "pytorch_model.bin", "2_Dense/pytorch_model.bin", "2_Dense/config.json"]
    assert chosen(*mixed, runtime="vllm") == {mixed[0], *mixed[2:]}


def test_a_whole_file_is_taken_before_its_shards_and_its_variants() -> None:
    assert chosen(*SHARDED, "model.safetensors", "model.fp16.safetensors") == {*SHARDED[:2], "model.safetensors"}


def test_the_second_set_of_a_mistral_repository_stays_behind_unless_it_is_the_only_one() -> None:
    assert chosen(*SHARDED, "consolidated.safetensors", "params.json") == set(SHARDED)
    assert chosen("consolidated.safetensors", "params.json", "tekken.json") == {
        "consolidated.safetensors",
        "params.json",
        "tekken.json",
    }


def test_folders_that_hold_the_model_again_stay_behind() -> None:
    extra = [
        "original/consolidated.00.pth",
        "original/params.json",
        "metal/model.bin",
        "checkpoint-500/model.safetensors",
    ]
    assert chosen(*SHARDED, *extra, "engines/abc/rank0.engine", "a.png") == set(SHARDED)


def test_code_and_small_files_in_folders_are_kept() -> None:
    small = ["modeling_x.py", "1_Pooling/config.json", "LICENSE", "chat_template.jinja", "vocab/merges.txt"]
    assert chosen(*SHARDED, *small) == {*SHARDED, *small}


GGUF = ["m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-f16-00001-of-00002.gguf", "m-f16-00002-of-00002.gguf", "README.md"]


def test_one_quantisation_is_taken_with_all_its_parts() -> None:
    assert chosen(*GGUF) == {"m-Q4_K_M.gguf", "README.md"}
    assert chosen(*GGUF, quant="f16") == {*GGUF[2:4], "README.md"}
    assert plan(files(*GGUF)).quant == "Q4_K_M"
    assert chosen(*GGUF, "mmproj-BF16.gguf", "mmproj-Q8_0.gguf") == {"m-Q4_K_M.gguf", "README.md", "mmproj-BF16.gguf"}


def test_a_quantisation_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no quantisation 'Q5_0'. It has F16, Q4_K_M, Q8_0"):
        plan(files(*GGUF), quant="Q5_0")
    with pytest.raises(UsageError, match="no quantisations"):
        plan(files(*SHARDED), quant="Q8_0")


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("Llama-3-8B.Q4_K_M.gguf", "Q4_K_M"),
        ("x-IQ2_XXS.gguf", "IQ2_XXS"),
        ("UD-Q2_K_XL/x-UD-Q2_K_XL-00001-of-00003.gguf", "UD-Q2_K_XL"),
        ("gpt-oss-20b-MXFP4.gguf", "MXFP4"),
        ("m-fp16.gguf", "F16"),
        ("plain.gguf", ""),
    ],
)
def test_the_name_of_a_gguf_file_tells_its_quantisation(name: str, quant: str) -> None:
    assert quant_of(name) == quant


def test_plain_onnx_graphs_are_taken_with_their_data_and_variants_on_request() -> None:
    paths = ["onnx/model.onnx", "onnx/model.onnx_data", "onnx/model_int8.onnx", "onnx/model_fp16.onnx", "config.json"]
    assert chosen(*paths, runtime="onnx") == {"onnx/model.onnx", "onnx/model.onnx_data", "config.json"}
    assert chosen(*paths, runtime="onnx", quant="int8") == {"onnx/model_int8.onnx", "config.json"}


def test_include_takes_the_place_of_the_choice_and_exclude_takes_away() -> None:
    assert chosen(*SHARDED, "pytorch_model.bin", include=["*.bin"]) == {"pytorch_model.bin"}
    assert chosen(*SHARDED, exclude=["tokenizer*"]) == set(SHARDED) - {"tokenizer.json"}
    with pytest.raises(UsageError, match=r"no file matches '\*\.foo'"):
        chosen(*SHARDED, include=["*.foo"])


def test_a_runtime_that_reads_none_of_it_is_refused_with_what_there_is() -> None:
    with pytest.raises(HfbenchError, match=r"nothing that llama\.cpp loads.*safetensors"):
        plan(files(*SHARDED), runtime="llama.cpp")


def test_what_is_left_out_is_told_with_reason_and_size() -> None:
    found = plan(files(*SHARDED, "pytorch_model.bin", "a.png"), runtime="vllm")
    assert {(each.why, each.files) for each in found.left_out} == {
        ("pictures and sound", 1),
        ("pytorch weights, which vllm does not need", 1),
    }


def test_a_repository_without_weights_is_taken_whole() -> None:
    assert chosen("README.md", "data.csv") == {"README.md", "data.csv"}
