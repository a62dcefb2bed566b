"""Serve commands: composed in each server's words, every option compared with the model and the card."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from small_model import all_of, config, make, put

from hfbench.actions.serve_command import ServeCommand, ServeCommandResult
from hfbench.engines.serving.asked import Wanted
from hfbench.engines.serving.compose import ORDER
from hfbench.engines.serving.flags import SERVERS, server
from hfbench.jobs.run import Run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A llama of two heads and one KV head, whose context is 32."""
    return make(tmp_path / "a model")


def served(model: Path, **values: object) -> ServeCommandResult:
    """The result of the action."""
    result = ServeCommand.spec.build({"model": str(model), "gpu": "H100", **values}).perform(Run())  # type: ignore[attr-defined]
    assert isinstance(result, ServeCommandResult)
    assert result.failed == (not result.command)
    return result


def said(result: ServeCommandResult, check: str, severity: str) -> str:
    """What a check found at a severity, empty for nothing."""
    return " ".join(
        f"{each.found}: {each.remedy}" for each in result.findings if (each.check, each.severity) == (check, severity)
    )


def test_each_server_is_spoken_to_in_its_own_words(model: Path) -> None:
    wanted = {"tp": 2, "max_len": 32, "memory_fraction": 0.85, "port": 9000, "max_seqs": 4}
    path = shlex.quote(str(model))
    assert served(model, runtime="vllm", dtype="half", **wanted).command == (
        f"vllm serve {path} --tensor-parallel-size 2 --max-model-len 32 --dtype half --gpu-memory-utilization 0.85 "
        "--max-num-seqs 4 --port 9000"
    )
    assert served(model, runtime="sglang", **wanted).command == (
        f"python -m sglang.launch_server --model-path {path} --tp-size 2 --context-length 32 "
        "--mem-fraction-static 0.85 --max-running-requests 4 --port 9000"
    )
    assert served(model, runtime="trtllm", **wanted).command == (
        f"trtllm-serve {path} --tp_size 2 --max_seq_len 32 --free_gpu_memory_fraction 0.85 --max_batch_size 4 "
        "--port 9000"
    )


def test_every_option_stands_in_the_order_and_every_table_knows_its_day() -> None:
    assert set(ORDER) == set(Wanted.__dataclass_fields__)
    for name in SERVERS:
        table = server(name)
        assert table.read == "2026-11-30"
        assert table.source
        assert set(table.flags) <= {*ORDER, "revision", "longer", "expert_parallel"}


@pytest.mark.parametrize("runtime", SERVERS)
def test_a_context_beyond_the_models_is_refused_with_how_it_comes_about(model: Path, runtime: str) -> None:
    result = served(model, runtime=runtime, max_len=33)
    assert "33 tokens are more than the 32 of the model (max_position_embeddings 32)" in said(result, "length", "error")
    assert result.command == ""
    assert "--" in " ".join(result.argv)


def test_linear_scaling_makes_the_context_longer_and_longrope_allows_more_on_request(model: Path) -> None:
    config(rope_scaling={"rope_type": "linear", "factor": 4.0})(model)
    assert "128 tokens" in said(served(model, max_len=128), "length", "ok").replace("128 of 128", "128")
    assert served(model, max_len=129).failed
    factors = {"short_factor": [1.0], "long_factor": [1.0]}
    config(
        max_position_embeddings=64,
        original_max_position_embeddings=32,
        rope_scaling={"rope_type": "longrope", "factor": 2.0, **factors},
    )(model)
    assert "64 tokens are more than the 32" in said(served(model, max_len=64), "length", "note")


@pytest.mark.parametrize(
    ("values", "check", "found"),
    [
        ({"tp": 4}, "parallelism", "2 heads do not divide by tp 4: use --tp 1 or 2"),
        ({"pp": 3}, "parallelism", "1 layer cannot be 3 stages"),
        ({"dtype": "bf16"}, "options", "--dtype takes auto, half"),
        ({"runtime": "trtllm", "dtype": "float16"}, "options", "no option for the type"),
        ({"gpu": "T4"}, "dtype", "bfloat16 needs compute capability 8.0, T4 16GB has 7.5"),
        ({"gpu": "A10", "quantization": "fp8", "capability": "7.5"}, "quantization", "from compute capability 8.0"),
        ({"runtime": "sglang", "quantization": "nonsense"}, "options", "--quantization takes"),
        ({"gpu": "600 MiB"}, "memory", "does not fit"),
        ({"ep": 2}, "options", "has no option in this table for --ep"),
    ],
)
def test_what_cannot_work_is_refused(model: Path, values: dict[str, object], check: str, found: str) -> None:
    result = served(model, **values)
    assert found in said(result, check, "error")
    assert result.headline


def test_more_ranks_than_gpus_here_are_refused_and_none_here_is_said(model: Path) -> None:
    result = ServeCommand.spec.build({"model": str(model), "tp": 2}).perform(Run())  # type: ignore[attr-defined]
    assert "no GPU here to compare with" in said(result, "parallelism", "note")
    assert result.command


def test_code_of_the_repository_is_refused_until_it_is_trusted_and_named_then(model: Path) -> None:
    code = {"AutoConfig": "configuration_mine.C", "AutoModelForCausalLM": "modeling_mine.LlamaForCausalLM"}
    edits = [put("configuration_mine.py", ""), put("modeling_mine.py", "")]
    all_of(config(model_type="mine", auto_map=code), *edits)(model)
    refused = served(model)
    assert "needs code of its repository: configuration_mine.py, modeling_mine.py" in said(
        refused, "remote code", "error"
    )
    trusted = served(model, trust_remote_code=True)
    assert trusted.command.endswith("--trust-remote-code")
    assert "these files run" in said(trusted, "remote code", "warning")


def test_trusting_code_that_is_not_there_is_told_to_do_nothing(model: Path) -> None:
    assert "does nothing" in said(served(model, trust_remote_code=True), "remote code", "note")


def test_a_packing_other_than_that_of_the_weights_is_refused(model: Path) -> None:
    config(quantization_config={"quant_method": "awq", "bits": 4, "group_size": 128})(model)
    assert "packed by awq, and --quantization says fp8" in said(
        served(model, quantization="fp8"), "quantization", "error"
    )
    assert not said(served(model, quantization="awq_marlin"), "quantization", "error")


def test_kv_heads_fewer_than_ranks_are_told_to_be_kept_twice(model: Path) -> None:
    assert "each KV head is kept 2 times" in said(served(model, tp=2), "parallelism", "note")


def test_an_unstable_type_is_refused_by_vllm_alone(model: Path) -> None:
    config(model_type="gemma2", architectures=["Gemma2ForCausalLM"], torch_dtype="bfloat16")(model)
    assert "unstable in float16" in said(served(model, dtype="float16"), "dtype", "error")
    assert not said(served(model, runtime="sglang", dtype="float16"), "dtype", "error")
