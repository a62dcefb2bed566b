"""Arguments that say what a configuration says, launch flags for the rest, and refusals of what cannot be said."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hf_models import NAMES, checkpoint

from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.parallel import Parallel
from hfbench.convert.megatron.plan import plan_megatron
from hfbench.convert.plan import Plan
from hfbench.errors import UsageError

RESTORED = """num_layers hidden_size ffn_hidden_size seq_length num_attention_heads num_query_groups
group_query_attention kv_channels max_position_embeddings position_embedding_type add_position_embedding
use_rotary_position_embeddings rotary_base rotary_percent rotary_interleaved add_bias_linear add_qkv_bias squared_relu
swiglu
untie_embeddings_and_output_weights apply_layernorm_1p normalization apply_query_key_layer_scaling attention_dropout
hidden_dropout mtp_num_layers spec num_experts moe_layer_freq moe_ffn_hidden_size moe_router_topk
moe_token_dispatcher_type moe_router_pre_softmax moe_grouped_gemm moe_shared_expert_intermediate_size
moe_router_score_function moe_router_enable_expert_bias moe_router_topk_scaling_factor moe_latent_size tokenizer_type
tokenizer_model tiktoken_pattern padded_vocab_size ckpt_format tensor_model_parallel_size pipeline_model_parallel_size
expert_model_parallel_size virtual_pipeline_model_parallel_size make_vocab_size_divisible_by"""
"""What --use-checkpoint-args looks for, and what a checkpoint is compared by."""


def planned(name: str = "llama", layout: Parallel | None = None, **changes: Any) -> Plan:
    model = checkpoint(name, **changes)
    return plan_megatron(model.config, model.specs, Destination(layout or Parallel()))


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_that_is_looked_for_is_there_as_plain_data(name: str) -> None:
    args = planned(name).args
    assert set(RESTORED.split()) <= set(args)
    assert all(value is None or type(value) in (bool, int, float, str, list) for value in args.values())


def test_rope_is_read_in_both_spellings_of_transformers() -> None:
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaling["original_max_position_embeddings"] = 8192
    old = planned(rope_theta=5e5, rope_scaling=scaling)
    new = planned(rope_theta=None, rope_parameters={"rope_theta": 5e5, **scaling})
    assert old.args == new.args
    assert old.args["rotary_base"] == 500000
    assert type(old.args["rotary_base"]) is int
    assert old.args["use_rope_scaling"]
    assert " ".join(old.launch_flags).endswith("--use-rope-scaling --rope-scaling-factor 8")
    plain = planned(rope_theta=10000.0)
    assert not plain.args["use_rope_scaling"]


@pytest.mark.parametrize(
    ("scaling", "told"),
    [
        ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 2.0}, "low_freq_factor 2: Megatron has 1 built in"),
        ({"rope_type": "dynamic", "factor": 2.0}, "'dynamic' has no counterpart"),
        ({"rope_type": "yarn", "factor": 4.0}, "yarn is known .* for multi-latent attention only"),
        ({"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}, "'longrope' has no counterpart"),
    ],
)
def test_scaling_that_megatron_cannot_express_is_refused(scaling: dict[str, Any], told: str) -> None:
    full = {"high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "low_freq_factor": 1.0}
    given = {**full, **scaling} if scaling["rope_type"] == "llama3" else scaling
    with pytest.raises(UsageError, match=told):
        planned(rope_scaling=given)


def test_linear_scaling_is_the_interpolation_factor() -> None:
    plan = planned(rope_scaling={"type": "linear", "factor": 4.0})
    assert plan.args["rotary_seq_len_interpolation_factor"] == 4.0
    assert "--rotary-seq-len-interpolation-factor" in plan.launch_flags


def test_yarn_of_multi_latent_attention_becomes_flags() -> None:
    scaling = {"type": "yarn", "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "beta_fast": 32, "beta_slow": 1}
    plan = planned("deepseek_v2", rope_scaling={**scaling, "original_max_position_embeddings": 4096})
    assert "--rope-type yarn --rotary-scaling-factor 40 --mscale 0.707 --mscale-all-dim 0.707" in " ".join(
        plan.launch_flags
    )
    assert not any("no words" in note for note in plan.notes)
    short = planned("deepseek_v2", rope_scaling={**scaling, "original_max_position_embeddings": 64})
    assert any("original_max_position_embeddings of yarn" in note for note in short.notes)
    assert planned("deepseek_v2").args["rope_type"] == "rope"  # left out, megatron-core would take yarn
    assert "--rope-type rope" in " ".join(planned("deepseek_v2").launch_flags)


def test_flags_tell_what_a_checkpoint_does_not() -> None:
    told = " ".join(planned("qwen3", Parallel(tp=2, pp=3, first_stage_layers=1, last_stage_layers=1)).launch_flags)
    for words in (
        "--use-checkpoint-args --no-load-optim --no-load-rng",
        "--norm-epsilon 1e-06",
        "--qk-layernorm",
        "--bf16",
        "--tensor-model-parallel-size 2",
        "--pipeline-model-parallel-size 3",
        "--decoder-first-pipeline-num-layers 1",
        "--decoder-last-pipeline-num-layers 1",
    ):
        assert words in told
    assert "--window-size 3,0" in " ".join(planned("mistral").launch_flags)
    assert "--moe-shared-expert-gate" in planned("qwen2_moe").launch_flags
    assert "--recompute-granularity" in planned(gradient_checkpointing=True).launch_flags
    assert "--kv-lora-rank 6" in " ".join(planned("deepseek_v3").launch_flags)


def test_routers_weigh_as_their_family_does() -> None:
    """A softmax over the chosen experts equals one over all of them that is divided by its sum."""
    for name, changes, before in (
        ("mixtral", {}, False),
        ("qwen3_moe", {"norm_topk_prob": True}, False),
        ("qwen3_moe", {"norm_topk_prob": False}, True),
        ("qwen2_moe", {}, True),
        ("deepseek_v2", {}, True),
    ):
        assert planned(name, **changes).args["moe_router_pre_softmax"] is before, name
    v3 = planned("deepseek_v3").args
    assert v3["moe_router_score_function"] == "sigmoid"
    assert v3["moe_router_enable_expert_bias"]
    assert (v3["moe_router_num_groups"], v3["moe_router_group_topk"]) == (2, 1)
    assert v3["moe_layer_freq"] == [0, 1, 1, 1]


def test_sizes_and_kinds() -> None:
    args = planned("qwen3").args
    assert (args["kv_channels"], args["num_query_groups"], args["group_query_attention"]) == (8, 2, True)
    assert not planned(num_key_value_heads=4).args["group_query_attention"]
    gpt2 = planned("gpt2").args
    assert (gpt2["position_embedding_type"], gpt2["normalization"]) == ("learned_absolute", "LayerNorm")
    assert gpt2["add_position_embedding"]
    assert gpt2["openai_gelu"]
    assert gpt2["ffn_hidden_size"] == 64
    assert not args["add_position_embedding"]
    gemma = planned("gemma2").args
    assert gemma["apply_layernorm_1p"]
    assert gemma["window_attn_skip_freq"] == [1, 0, 1, 0]
    assert planned(max_position_embeddings=131072).args["seq_length"] == 4096


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("llama", {"attention_bias": True}, "attention has biases and the feed-forward has none"),
        ("llama", {"hidden_act": "gelu"}, "the activation is 'gelu', llama in Megatron has silu"),
        ("qwen2", {"use_sliding_window": True}, "a sliding window in some of the layers"),
        ("qwen3", {"attention_bias": True}, "attention has biases, on its output too"),
        ("deepseek_v3", {"norm_topk_prob": False}, "norm_topk_prob is false"),
        ("mixtral", {"num_experts_per_tok": 9}, "9 experts a token of 4"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is set"),
        ("llama", {"num_attention_heads": 5}, "5 attention heads do not divide into 2 key-value heads"),
        ("llama", {"num_hidden_layers": "four"}, "config.json"),
    ],
)
def test_configurations_that_megatron_cannot_express_are_refused(name: str, changes: dict[str, Any], told: str) -> None:
    model = checkpoint(name)
    with pytest.raises(UsageError, match=re.escape(told)):
        plan_megatron({**model.config, **changes}, model.specs, Destination())


def test_a_rotary_base_that_is_no_integer_is_told() -> None:
    plan = planned(rope_theta=10000.5)
    assert plan.args["rotary_base"] == 10000.5
    assert any("no integer" in note for note in plan.notes)
