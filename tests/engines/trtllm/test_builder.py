"""The builder trtllm against recordings of its programs: what is refused before anything starts, and what is kept."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Made = Callable[..., Any]


def test_a_build_converts_then_builds_and_records_what_tensorrt_llm_does_not(bench: Made) -> None:
    made = bench()
    code, told = made.build("set=max_num_tokens=2048", "set=use_fused_mlp=disable")
    assert code == 0, told
    manifest = made.manifest
    assert manifest["built_on"]["tensorrt_llm"] == "1.2.1+recording"
    assert manifest["built_on"]["tensorrt"] == "10.14.1.48"
    assert manifest["built_on"]["gpu"]["compute_capability"] == "9.0"
    assert manifest["built_on"]["driver"]
    assert manifest["dtype"] == "bfloat16"
    assert manifest["options"]["template"] == "dense-bf16, named by default"
    assert manifest["options"]["max_num_tokens"] == "2048 (user)"
    assert manifest["options"]["gemm_plugin"] == "bfloat16 (template)"
    assert manifest["options"]["plugin_config.gemm_plugin"] == "bfloat16"
    assert manifest["argv"][1:5] == ["--checkpoint_dir", "CHECKPOINT", "--output_dir", "ENGINE"]
    assert manifest["source"]["files"][0]["name"] == "model.safetensors"
    assert manifest["proof"]["verdict"] == "not run"
    assert {each["name"] for each in manifest["files"]} == {"config.json", "rank0.engine"}
    assert "Total time of building all engines" in (made.out / "build.log").read_text()
    assert told["phases"][0] == "convert"
    assert {"compile", "write"} <= set(told["phases"])


def test_ranks_are_converted_and_every_plan_is_there(bench: Made) -> None:
    made = bench()
    code, told = made.build("template=tensor-parallel-2")
    assert code == 0, told
    assert made.manifest["layout"] == {"world_size": 2, "tp": 2, "pp": 1}
    assert (made.out / "rank1.engine").is_file()
    assert "--tp_size 2" in made.manifest["options"]["convert"]


REFUSED = [
    (["set=max_batch_sizes=4"], "trtllm-build has no flag 'max_batch_sizes'", "did you mean 'max_batch_size'?"),
    (["set=gemm_plugin=flot16"], "not 'flot16'", "did you mean 'float16'?"),
    (["set=use_custom_all_reduce=enable"], "is obsolete since 0.13", "leave it away"),
    (["set=max_output_len=5"], "is obsolete: replaced", "give --context"),
    (["set=tp_size=2"], "trtllm-build has no flag tp_size", "give --tp"),
    (["set=max_batch_size=4"], "max_batch_size is set from --batch", "give that instead"),
    (["set=streamingllm=enable"], "no longer supported", "leave streamingllm away"),
    (["set=convert.use_fp9=true"], "convert_checkpoint has no flag 'use_fp9'", "did you mean 'use_fp8'?"),
    (["set=nonsense"], "'nonsense' is no flag=value", "write it as"),
    (["context=8192"], "max_seq_len 8,192 is more than the 4,096 tokens", "at most 4096"),
    (["tp=3"], "tp 3 x pp 1 take 3 GPUs, there are 2 here", "use fewer ranks"),
    (["pp=2", "tp=2"], "take 4 GPUs", "fewer"),
    (["template=nope"], "there is no template 'nope'", ""),
    (["dtype=fp16", "template=dense-bf16"], "gemm_plugin is bfloat16, and the model computes in float16", "auto"),
    (["set=max_num_tokens=1", "batch=4"], "max_num_tokens 1 is less than max_batch_size 4", "max_num_tokens=4"),
    (["set=gemm_plugin=fp8"], "gemm_plugin is fp8, and the weights are not packed", "gemm_plugin=auto"),
    (["set=examples=/nowhere"], "the conversion of TensorRT-LLM is not there", "examples"),
]


def test_what_cannot_work_is_refused_before_a_program_starts(bench: Made) -> None:
    made = bench()
    answers = made.builds([words for words, _, _ in REFUSED])
    for (code, told), (words, found, remedy) in zip(answers, REFUSED, strict=True):
        assert code in (2, 4), words
        assert found in told["found"], words
        assert remedy in told["remedy"], words
    assert not made.out.exists()
    assert not list(made.out.parent.glob(".engine*"))


@pytest.mark.parametrize(
    ("fault", "found"),
    [("memory", "memory"), ("signal", "SIGSEGV"), ("unwritten", "did not write rank1.engine"), ("plugin", "lug")],
)
def test_a_program_that_fails_is_named_by_its_log_and_leaves_no_engine(bench: Made, fault: str, found: str) -> None:
    made = bench()
    code, told = made.build("template=tensor-parallel-2", RECORDING_FAULT=fault)
    assert code == 1
    assert found in told["found"]
    assert not made.out.exists()
    assert not list(made.out.parent.glob(".engine*"))


def test_a_newer_tensorrt_llm_is_told_plainly_with_the_commands_that_take_its_place(bench: Made) -> None:
    made = bench("1.3.0rc29")
    code, told = made.build()
    assert code == 2
    assert "TensorRT-LLM 1.3.0rc29 builds no plans" in told["found"]
    assert f"trtllm-serve {made.model}" in told["remedy"]
    assert "trtllm-bench -m model" in told["remedy"]
    assert "--backend pytorch" in told["remedy"]


def test_a_version_older_than_the_table_is_refused(bench: Made) -> None:
    code, told = bench("0.12.0").build()
    assert code == 2
    assert "older than the table of flags" in told["found"]


def test_without_tensorrt_llm_or_without_a_gpu_it_says_what_to_declare(bench: Made) -> None:
    code, told = bench(None).build()
    assert code == 4
    assert "[environments.trtllm]" in told["remedy"]


def test_a_plan_is_not_built_for_the_cpu(bench: Made) -> None:
    code, told = bench().build("device=cpu")
    assert code == 4
    assert "a plan is built on the GPU it is for" in told["found"]


def test_the_models_metadata_names_its_template_and_the_user_has_the_last_word(bench: Made) -> None:
    made = bench()
    path = made.model / "config.json"
    told = json.loads(path.read_text())
    wish = {"template": "dense-bf16", "build": {"max_num_tokens": 4096, "use_fused_mlp": "disable"}}
    path.write_text(json.dumps({**told, "trtllm_config": wish}))
    code, told = made.build("set=max_num_tokens=2048")
    assert code == 0, told
    options = made.manifest["options"]
    assert options["template"] == "dense-bf16, named by model"
    assert options["use_fused_mlp"] == "disable (model)"
    assert options["max_num_tokens"] == "2048 (user)"


def test_a_cancelled_build_ends_its_program_and_leaves_nothing(bench: Made) -> None:
    made = bench()
    shapes = ["--context", "1024", "--max-prompt", "512", "--device", "cuda:0"]
    words = ["engine", "build", str(made.model), "--out", str(made.out), "--builder", "trtllm", *shapes, "--detach"]
    assert made.run(*words, RECORDING_FAULT="slow").returncode == 0
    partial = made.out.with_name(".engine.partial")
    end = time.monotonic() + 60
    while "TensorRT LLM version" not in _text(partial / "build.log"):
        assert time.monotonic() < end, _text(partial / "build.log")
        time.sleep(0.05)
    assert _recordings(partial)
    assert made.run("jobs", "cancel", "last").returncode == 0
    while partial.exists() or _recordings(partial):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not made.out.exists()


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _recordings(folder: Path) -> list[str]:
    """Processes whose command line names the folder that is being built in."""
    lines = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(each.read_bytes().decode("utf-8", "replace"))
    return [line for line in lines if "recording_trtllm_build" in line and str(folder) in line]
