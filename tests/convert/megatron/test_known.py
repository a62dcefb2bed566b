"""Megatron checkpoints that others wrote: what is recognised, what is asked for, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hf_models import checkpoint, specs_of

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.parallel import Parallel
from hfbench.convert.megatron.plan import plan_megatron
from hfbench.convert.megatron.plan_back import plan_hf
from hfbench.errors import HfbenchError, UsageError

Written = tuple[dict[str, Any], dict[str, TensorSpec], dict[str, Any]]


def written(name: str = "llama", layout: Parallel | None = None, **options: Any) -> Written:
    """Arguments and tensors of a checkpoint without a trace of hfbench, and the configuration it was made from."""
    model = checkpoint(name)
    plan = plan_megatron(model.config, model.specs, Destination(layout or Parallel(tp=2), **options))
    args = {key: value for key, value in plan.args.items() if key != "hf_model_type"}
    return args, specs_of(plan), model.config


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("llama", "llama"),
        ("llama_biases", "llama"),
        ("qwen2", "qwen2"),
        ("qwen3", "qwen3"),
        ("mixtral", "mixtral"),
        ("qwen2_moe", "qwen2_moe"),
        ("qwen3_moe", "qwen3_moe"),
        ("deepseek_v2", "deepseek_v2"),
        ("deepseek_v3", "deepseek_v3"),
        ("gemma", "gemma"),
        ("gemma2", "gemma2"),
        ("gemma3", "gemma3_text"),
        ("gpt2", "gpt2"),
    ],
)
def test_arguments_alone_tell_the_family(name: str, family: str) -> None:
    args, specs, _ = written(name)
    plan = plan_hf(args, specs)
    assert plan.family == family
    assert f"taken for a model of the family {family}, by its arguments" in plan.notes
    assert set(checkpoint(name).shapes) == {target.spec.name for target in plan.targets}


def test_without_arguments_the_configuration_tells_everything() -> None:
    """Megatron-Bridge writes torch_dist without arguments."""
    _, specs, config = written("qwen3", format="torch_dist")
    with pytest.raises(UsageError, match=r"has no arguments.*--config"):
        plan_hf({}, specs)
    assert {target.spec.name for target in plan_hf({}, specs, config).targets} == set(checkpoint("qwen3").shapes)


def test_the_true_vocabulary_is_asked_for_where_nothing_tells_it() -> None:
    args, specs, config = written()
    del args["vocab_size"]
    with pytest.raises(UsageError, match="256 rows and nothing tells how many of them are padding"):
        plan_hf(args, specs)
    plan = plan_hf(args, specs, vocab=50)
    assert plan.args["vocab_size"] == 50
    with pytest.raises(HfbenchError, match="the vocabulary is 300, the embedding has 256 rows"):
        plan_hf(args, specs, vocab=300)
    assert plan_hf(args, specs, config, vocab=40).args == {**config, "vocab_size": 40}


def test_a_configuration_of_another_model_is_refused() -> None:
    args, specs, config = written()
    for key, value, told in (
        ("num_hidden_layers", 3, "num_layers 3, the checkpoint's arguments 4"),
        ("tie_word_embeddings", True, "untie_embeddings_and_output_weights False"),
    ):
        with pytest.raises(HfbenchError, match=told):
            plan_hf(args, specs, {**config, key: value})


def test_more_learned_positions_than_the_configuration_has_are_refused() -> None:
    args, specs, config = written("gpt2")
    with pytest.raises(HfbenchError, match="max_position_embeddings 16, the checkpoint's arguments 32"):
        plan_hf(args, specs, {**config, "n_positions": 16})


def test_missing_ranks_are_named() -> None:
    args, specs, _ = written(layout=Parallel(tp=2, pp=2))
    left = {name: spec for name, spec in specs.items() if not name.startswith("mp_rank_01_001:")}
    with pytest.raises(HfbenchError, match="1 rank of 4 missing: 'mp_rank_01_001'"):
        plan_hf(args, left)
    with pytest.raises(HfbenchError, match="'mp_rank_02_000' belong to no rank of TP 2, PP 2"):
        plan_hf(args, specs | {"mp_rank_02_000:x": TensorSpec("mp_rank_02_000:x", "BF16", (1,))})


@pytest.mark.parametrize(
    ("tensor", "args", "told"),
    [
        ("mp_rank_00:decoder.layers.0.self_attention.query_key_value.weight", {}, "legacy Megatron layout"),
        ("mp_rank_00:language_model.encoder.layers.0.mlp.weight", {}, "legacy Megatron layout"),
        ("mp_rank_00:decoder.layers.0.mlp.experts.weight1", {}, "--moe-use-legacy-grouped-gemm"),
        ("", {"virtual_pipeline_model_parallel_size": 2}, "virtual pipeline stages"),
        ("", {"account_for_loss_in_pipeline_split": True}, "the loss counted as a layer"),
        ("", {"num_experts": 4, "expert_tensor_parallel_size": 1}, "expert_tensor_parallel_size"),
    ],
)
def test_layouts_that_are_not_known_are_refused_by_name(tensor: str, args: dict[str, Any], told: str) -> None:
    told_args, specs, _ = written()
    extra = {tensor: TensorSpec(tensor, "BF16", (1,))} if tensor else {}
    with pytest.raises(UsageError, match=told):
        plan_hf(told_args | args, specs | extra)


def test_a_tensor_too_few_too_many_or_of_another_shape() -> None:
    args, specs, _ = written()
    name = "mp_rank_01:decoder.layers.3.mlp.linear_fc2.weight"
    with pytest.raises(HfbenchError, match=f"1 tensor missing: '{name}'"):
        plan_hf(args, {key: spec for key, spec in specs.items() if key != name})
    with pytest.raises(HfbenchError, match=r"has shape \[1\], the arguments ask for \[16, 12\]"):
        plan_hf(args, specs | {name: TensorSpec(name, "BF16", (1,))})
    with pytest.raises(HfbenchError, match="1 tensor without a place in a llama model: 'mp_rank_00:adapter'"):
        plan_hf(args, specs | {"mp_rank_00:adapter": TensorSpec("mp_rank_00:adapter", "BF16", (1,))})


def test_states_of_transformer_engine_are_left_out() -> None:
    args, specs, _ = written()
    name = "mp_rank_00:decoder.layers.0.mlp.linear_fc1._extra_state"
    plan = plan_hf(args, specs | {name: TensorSpec(name, "U8", (5,))})
    assert name in {each.source for each in plan.dropped}


def test_norms_of_latent_attention_are_found_in_either_spelling() -> None:
    """Tools wrote kv_layernorm beside names of Transformer Engine."""
    args, specs, _ = written("deepseek_v2", format="torch_dist")
    other = {
        name.replace("self_attention.linear_kv_up_proj.layer_norm_", "self_attention.kv_layernorm."): spec
        for name, spec in specs.items()
    }
    assert other.keys() != specs.keys()
    assert plan_hf(args, other).targets


def test_degrees_that_the_arguments_leave_out_are_counted_in_the_folders() -> None:
    args, specs, _ = written(layout=Parallel(tp=2, pp=2))
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size"):
        del args[name]
    assert set(checkpoint("llama").shapes) == {target.spec.name for target in plan_hf(args, specs).targets}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("pipeline_model_parallel_size", 10**30, r"TP 2, PP 10{30}, EP 1; 2 ranks are there"),
        ("tensor_model_parallel_size", "x", "tensor_model_parallel_size is 'x'"),
        ("decoder_last_pipeline_num_layers", "x", "decoder_last_pipeline_num_layers is 'x'"),
        ("num_layers", 10**9, "num_layers is '1000000000'"),
        ("rotary_base", "x", "rotary_base is 'x'"),
    ],
)
def test_arguments_of_another_kind_or_size_are_refused_at_once(name: str, value: object, told: str) -> None:
    args, specs, _ = written()
    with pytest.raises(HfbenchError, match=told):
        plan_hf({**args, name: value}, specs)


def test_ranks_of_different_dtypes_become_one_by_a_cast() -> None:
    args, specs, _ = written()
    name = "mp_rank_01:decoder.layers.0.mlp.linear_fc2.weight"
    mixed = specs | {name: TensorSpec(name, "F32", specs[name].shape)}
    with pytest.raises(UsageError, match=r"differ in dtype\. Choose one with --dtype"):
        plan_hf(args, mixed)
    assert {target.spec.dtype for target in plan_hf(args, mixed, dtype="BF16").targets} == {"BF16"}


def test_the_state_of_an_optimizer_is_left_out_with_its_reason() -> None:
    args, specs, _ = written(format="torch_dist")
    state = ("optimizer.state.exp_avg.decoder.final_layernorm.weight", "chained_1.optimizer.state.step", "rng_state")
    plan = plan_hf(args, specs | {name: TensorSpec(name, "F32", (3,)) for name in state})
    assert {each.source: each.why for each in plan.dropped} == dict.fromkeys(state, "state of training, no weight")
