"""fit: the verdict for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from known_models import LLAMA_8B

from hfbench.actions.fit import Fit, FitResult
from hfbench.actions.registry import find
from hfbench.actions.results import exit_of, result_data
from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run
from hfbench.models.reference import NotFound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "llama-8b"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(LLAMA_8B))
    return made


def fit(folder: Path, **asked: Any) -> FitResult:
    return Fit(model=str(folder), **{"gpu": "H100", **asked}).perform(Run())


def shard(folder: Path, name: str = "model.safetensors") -> None:
    header = b'{"model.embed_tokens.weight":{"dtype":"BF16","shape":[128256,16],"data_offsets":[0,4104192]}}'
    (folder / name).write_bytes(len(header).to_bytes(8, "little") + header + bytes(4104192))


def test_the_result_has_the_fields_that_others_rely_on(folder: Path) -> None:
    told = encode(fit(folder))
    assert (told["parameters"], told["tensors"], told["weight_bytes"]) == (8_030_261_248, 291, 16_060_522_496)
    assert told["kv_bytes_per_token"] == 131_072
    assert told["terms"]["kv_cache"] == 32768 * 131_072
    assert told["total_bytes"] == sum(told["terms"].values())
    assert told["fits"] is True
    assert told["limiting"] is None
    assert told["failed"] is False
    assert told["terms"].keys() == told["formulas"].keys()
    assert told["largest_context"] == 131072
    assert told["largest_batch"] > 1
    assert decode(FitResult, json.loads(json.dumps(told))) == fit(folder)


def test_what_does_not_fit_fails_and_names_the_term(folder: Path) -> None:
    small = fit(folder, gpu="T4")
    assert (small.fits, small.limiting, small.failed) == (False, "weights", True)
    many = fit(folder, batch=64)
    assert (many.fits, many.limiting) == (False, "kv_cache")
    assert any("x does not fit: kv cache" in line for line in many.lines())


def test_the_grid_names_what_does_not_fit_and_its_cells_are_those_of_the_command_itself(folder: Path) -> None:
    assert fit(folder).grid == ()
    result = fit(folder, grid=True, batch=4)
    assert [row[0].context for row in result.grid] == [4096, 8192, 16384, 32768, 65536, 131072]
    assert [cell.batch for cell in result.grid[0]] == [1, 4, 16, 64, 256]
    for cell in (cell for row in result.grid for cell in row):
        alone = fit(folder, context=cell.context, batch=cell.batch)
        assert (cell.total_bytes, cell.fits, cell.limiting) == (alone.total_bytes, alone.fits, alone.limiting)
    lines = result.lines()
    at = lines.index("GiB on a GPU by context and batch:")
    assert lines[at + 1].split() == ["batch", "1", "4", "16", "64", "256"]
    assert lines[at + 5].split() == [
        "32k",
        "ok",
        "21.0",
        "ok",
        "33.0",
        "x",
        "81.0",
        "kv",
        "x",
        "273",
        "kv",
        "x",
        "1.0T",
        "kv",
    ]
    assert all(len(line) <= 80 for line in lines)
    assert decode(FitResult, json.loads(json.dumps(encode(result)))) == result


def test_a_context_beyond_the_limit_is_marked_in_the_grid(folder: Path) -> None:
    lines = fit(folder, grid=True, context=262_144).lines()
    assert any(line.startswith("256k! ") for line in lines)
    assert any(line.startswith("128k  ") for line in lines)


def test_nothing_is_known_of_the_cache_and_there_is_no_grid(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    shard(bare)
    assert fit(bare, grid=True).grid == ()
    assert fit(bare).largest_batch is None


def test_the_result_lists_the_ranks_that_may_be_asked_for(folder: Path) -> None:
    allowed = fit(folder).allowed
    assert allowed["tp"] == (1, 2, 4, 8, 16, 32)
    assert allowed["ep"] == (1,)
    assert allowed["pp"][-1] == 32


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpu": "H999"}, {"dtype": "float3"}, {"kv_dtype": "?"}, {"tp": 3}, {"ep": 2}, {"pp": 33}, {"context": "0"},
        {"batch": "-1"}, {"runtime": "tgi"}, {"grid": "maybe"},
    ],
    ids=str,
)  # fmt: skip
def test_an_option_that_cannot_be_is_exit_2(
    folder: Path, hfbench: Callable[..., CompletedProcess[str]], wrong: dict[str, Any]
) -> None:
    [(name, value)] = wrong.items()
    done = hfbench("fit", folder, f"--{name.replace('_', '-')}={value}")
    assert done.returncode == 2
    assert done.stderr.startswith("hfbench: ")
    assert "Traceback" not in done.stderr


def test_a_nominal_memory_is_told_as_a_guess(folder: Path) -> None:
    assert any("MI325X 256GB is the one in its name" in guess for guess in fit(folder, gpu="MI325X").guesses)
    assert not any("in its name" in guess for guess in fit(folder, gpu="MI300X").guesses)


def test_what_the_configuration_leaves_out_is_told_as_a_guess(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 4096}))
    guesses = fit(folder).guesses
    assert any("'num_hidden_layers'" in each and "defaults of transformers" in each for each in guesses)


def test_a_runtime_that_expands_latent_vectors_keeps_more(folder: Path) -> None:
    sizes = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
    config = {**LLAMA_8B, "model_type": "deepseek_v3", **sizes, "moe_intermediate_size": 64, "n_routed_experts": 2}
    (folder / "config.json").write_text(json.dumps(config))
    kept = {
        runtime: fit(folder, runtime=runtime).kv_bytes_per_token for runtime in find("fit").param("runtime").choices
    }
    assert kept["vllm"] == kept["transformers"] == 32 * (512 + 64) * 2
    assert kept["transformers-5.14"] == 32 * 32 * (128 + 64 + 128) * 2


def test_the_command_exits_with_1_when_it_does_not_fit(
    folder: Path, hfbench: Callable[..., CompletedProcess[str]]
) -> None:
    done = hfbench("fit", folder, "--gpu", "T4", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["limiting"] == "weights"
    assert hfbench("fit", folder, "--gpu", "H100").returncode == 0


def test_a_context_beyond_the_limit_is_warned_of(folder: Path) -> None:
    result = fit(folder, context=200_000)
    assert result.warnings[0] == "context 200,000 is beyond the model's limit of 131,072 tokens"
    assert result.fits is True
    assert fit(folder, context=131_072).warnings == ()


def test_what_is_counted_and_what_is_guessed_says_so(folder: Path) -> None:
    guesses = " ".join(fit(folder).guesses)
    assert "counted from the architecture" in guesses
    assert "activations" in guesses
    assert "CUDA context" in guesses
    assert "graph pools" in guesses
    assert "context: 32,768 tokens, as none is asked for" in guesses


def test_headers_are_exact_and_without_a_configuration_there_is_no_cache_figure(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    shard(bare)
    result = fit(bare)
    assert (result.source, result.weight_bytes, result.tensors) == ("headers", 4104192, 1)
    assert result.kv_bytes_per_token is None
    assert result.total_bytes is None
    assert result.fits is None
    assert "kv_cache" not in result.terms
    assert result.warnings == ("no configuration, so no figure for the KV cache",)
    assert fit(bare, gpu="1 MiB").fits is False


def test_missing_shards_are_told_and_fail(folder: Path) -> None:
    shard(folder, "model-00001-of-00002.safetensors")
    weight_map = {
        "model.embed_tokens.weight": "model-00001-of-00002.safetensors",
        "x": "model-00002-of-00002.safetensors",
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    result = fit(folder)
    assert result.failed
    assert "model-00002-of-00002.safetensors" in result.warnings[0]


def test_weights_that_cannot_be_read_are_told_and_counted_by_the_architecture(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 20)
    result = fit(folder)
    assert (result.source, result.parameters) == ("architecture", 8_030_261_248)
    assert "model.safetensors" in result.guesses[0]


def test_weights_that_cannot_be_read_and_no_configuration_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(HfbenchError, match="no weights can be read"):
        fit(tmp_path / "broken")


def test_an_unknown_architecture_has_no_total_and_no_verdict(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({**LLAMA_8B, "model_type": "brand_new"}))
    result = fit(folder)
    assert result.parameters is None
    assert result.weight_bytes is None
    assert result.total_bytes is None
    assert result.kv_bytes_per_token == 131_072
    assert result.fits is None
    assert not result.failed
    assert "not known for model_type 'brand_new'" in result.warnings[0]


def test_without_a_gpu_there_is_no_verdict_but_every_term(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hfbench.gpu.reading import Unavailable
    from hfbench.gpu.telemetry import sampler

    monkeypatch.setattr(sampler, "open_nvml", lambda: Unavailable("no driver"))
    result = fit(folder, gpu=None)
    assert result.device is None
    assert result.fits is None
    assert not result.failed
    assert result.total_bytes
    assert "--gpu" in result.warnings[0]
    assert exit_of(result_data(result)) == 4


def test_without_a_gpu_the_command_ends_as_help_says_and_shows_its_figures(
    folder: Path, hfbench: Callable[..., CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HFBENCH_DEMO_GPUS", raising=False)
    done = hfbench("fit", folder)
    if "no verdict without a GPU" not in done.stdout:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 4
    assert "kv cache" in done.stdout
    assert "name one with --gpu" in done.stdout
    assert hfbench("fit", folder, "--gpu", "H100").returncode == 0
    assert hfbench("fit", folder, "--gpu", "T4").returncode == 1


def test_incomplete_weights_are_no_fit_and_say_so(folder: Path) -> None:
    shard(folder, "model-00001-of-00002.safetensors")
    weight_map = {"model.embed_tokens.weight": "model-00001-of-00002.safetensors", "x": "gone.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    result = fit(folder)
    assert exit_of(result_data(result)) == 1
    assert "x what can be read fits, but the weights are incomplete" in "\n".join(result.lines())


@pytest.mark.parametrize(
    ("config", "runtime", "told"),
    [
        ({"model_type": "whisper"}, "vllm", "context 448 at batch 1; "),
        ({"model_type": "falcon"}, "vllm", "context 2,048 at batch 1; "),
        ({"model_type": "bloom"}, "transformers", " at batch 1, no limit told"),
        ({"model_type": "bloom"}, "vllm", "context 2,048 at batch 1; "),
    ],
    ids=str,
)
def test_the_bound_of_a_search_is_no_limit_of_a_model(
    tmp_path: Path, config: dict[str, Any], runtime: str, told: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    lines = fit(tmp_path, gpu="H200", runtime=runtime).lines()
    assert any(told in line for line in lines)


@pytest.mark.usefixtures("terminal")
def test_what_reached_the_bound_of_the_search_may_be_more(folder: Path) -> None:
    result = fit(folder, gpu="16TiB", dtype="fp4", kv_dtype="fp4", context=1)
    assert result.largest_batch == 2**16
    assert any("batch 65,536 or more at context 1" in line for line in result.lines())
    endless = replace(result, context_limit=None, largest_context=2**24)
    rows = [line for line in endless.lines() if "at batch" in line or "at context" in line]
    assert rows == [
        "at most     context 16,777,216 or more at batch 1, no limit told",
        "            batch 65,536 or more at context 1",
    ]


def test_each_runtime_has_its_own_limit(folder: Path) -> None:
    linear = {**LLAMA_8B, "max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2.0}}
    (folder / "config.json").write_text(json.dumps(linear))
    assert (fit(folder).context_limit, fit(folder, runtime="transformers").context_limit) == (8192, 4096)
    assert any("4,096 times the factor 2.0" in guess for guess in fit(folder).guesses)


def test_parallel_ranks_divide_the_terms(folder: Path) -> None:
    alone, four = fit(folder), fit(folder, tp=4)
    assert four.terms["kv_cache"] * 4 == alone.terms["kv_cache"]
    assert four.device is not None
    assert four.device.needed == 4
    assert four.terms["nccl"] > 0
    with pytest.raises(UsageError, match="32 heads do not divide by tp=3"):
        fit(folder, tp=3)


def test_types_change_weights_and_cache_each_by_itself(folder: Path) -> None:
    half = fit(folder, dtype="fp8")
    assert (half.weight_bytes, half.kv_bytes_per_token) == (8_030_261_248, 131_072)
    assert fit(folder, kv_dtype="fp8").kv_bytes_per_token == 65_536
    with pytest.raises(UsageError, match="not a type"):
        fit(folder, dtype="floaty")


@pytest.mark.usefixtures("terminal")
def test_the_lines_fit_a_terminal_and_hold_no_control_character(tmp_path: Path) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    config = {**LLAMA_8B, "model_type": "x\x1b[2J" * 50, "layer_types": ["\x1b[31m" * 9] * 32}
    (hostile / "config.json").write_text(json.dumps(config))
    for result in (fit(hostile), fit(hostile, tp=2, context=10**9, batch=10**6)):
        assert all(len(line) <= 80 and line.isprintable() for line in result.lines())
        assert len(result.lines()) <= 24


def test_the_declaration_is_inline_with_a_positional_model() -> None:
    spec = find("fit")
    assert spec.inline
    assert [param.name for param in spec.params if param.positional] == ["model"]


def test_no_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        fit(tmp_path / "nowhere")
