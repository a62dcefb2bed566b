"""What a checkpoint's arguments say, held against the configuration of its source: mistakes that no weight shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.convert.walls.megatron_args import MegatronArgs
from hfbench.convert.walls.results import Fact
from hfbench.errors import UsageError
from hfbench.estimate.settings import Settings

Expected = Iterator[tuple[str, Any, Any, str]]
"""An argument, what it should be, what Megatron takes where it is not stated, and the key it comes from."""

LATENT = {
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_head_dim": "qk_nope_head_dim",
    "qk_pos_emb_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
}
QK_NORM = ("qwen3", "qwen3_moe", "gemma3_text", "deepseek_v2", "deepseek_v3")
"""Types whose queries and keys, or the latents they are made from, have norms."""
LAUNCH_ONLY = ("norm_epsilon", "qk_layernorm", "use_rope_scaling", "rope_scaling_factor", "multi_latent_attention")
"""What `--use-checkpoint-args` leaves to the launch command."""


def wrong_facts(args: Mapping[str, Any], config: Mapping[str, Any], tensors: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Arguments that contradict the configuration, by rules of their own and none of the converter's.

    `tensors` are the source's names: biases are told by them alone. Floats may differ by 1e-6 of their value.
    """
    settings = Settings(config)
    found = []
    for rules in (_sizes, _norms, _rope, _experts, _latent, _layout):
        for argument, expected, default, key in rules(settings, tensors):
            stated = args.get(argument)
            value = default if stated is None else stated
            if expected is not None and not _same(value, expected):
                told = "not stated" if stated is None else shown(stated)
                found.append(Fact(argument=argument, expected=shown(expected), found=told, key=key))
    return (*found, *_vocabulary(args, settings))


def not_stated(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments only a launch command gives that the checkpoint does not hold at all."""
    return tuple(name for name in LAUNCH_ONLY if name not in args)


def _sizes(settings: Settings, tensors: Mapping[str, Any]) -> Expected:
    heads, groups = settings.heads, settings.kv_heads
    latent = settings.get("kv_lora_rank")
    yield "num_layers", settings.layers, None, "num_hidden_layers"
    yield "hidden_size", settings.hidden, None, "hidden_size"
    yield "num_attention_heads", heads, None, "num_attention_heads"
    if not latent:
        yield "num_query_groups", groups, heads, "num_key_value_heads"
        yield "group_query_attention", groups != heads, False, "num_key_value_heads"
        yield "kv_channels", settings.head_dim, settings.hidden // heads, "head_dim"
    if settings.get("intermediate_size") is not None:
        yield "ffn_hidden_size", settings.get("intermediate_size"), 4 * settings.hidden, "intermediate_size"
    yield "untie_embeddings_and_output_weights", not settings.tied, False, "tie_word_embeddings"
    window = settings.get("sliding_window")
    if settings.get("use_sliding_window") is not False and settings.kind in ("mistral", "mixtral", "phi3") and window:
        yield "window_size", [int(window) - 1, 0], None, "sliding_window"


def _norms(settings: Settings, tensors: Mapping[str, Any]) -> Expected:
    rms, plain = settings.get("rms_norm_eps"), settings.get("layer_norm_epsilon")
    yield (
        "norm_epsilon",
        rms if rms is not None else plain,
        1e-5,
        "rms_norm_eps" if rms is not None else "layer_norm_epsilon",
    )
    yield "normalization", "RMSNorm" if rms is not None else "LayerNorm", "LayerNorm", "model_type"
    yield "apply_layernorm_1p", settings.kind.startswith("gemma"), False, "model_type"
    yield "qk_layernorm", settings.kind in QK_NORM, False, "model_type"
    biased = [name for name in tensors if name.endswith(".bias")]
    linear = any("down_proj" in name or "c_proj" in name or "o_proj" in name for name in biased)
    yield "add_bias_linear", linear, True, "the biases of the source"
    if not linear:
        yield (
            "add_qkv_bias",
            any("q_proj" in name or "qkv_proj" in name for name in biased),
            False,
            "the biases of the source",
        )


def _rope(settings: Settings, tensors: Mapping[str, Any]) -> Expected:
    if settings.kind == "gpt2":
        yield "position_embedding_type", "learned_absolute", "learned_absolute", "model_type"
        return
    theta, scaling = rope_of(settings)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    latent = bool(settings.get("kv_lora_rank"))
    yield "position_embedding_type", "rope", "learned_absolute", "model_type"
    yield "rotary_base", theta, 10000, "rope_theta"
    yield "use_rope_scaling", kind == "llama3", False, "rope_scaling.rope_type"
    if kind == "llama3":
        yield "rope_scaling_factor", scaling.get("factor"), 8.0, "rope_scaling.factor"
    stretch = scaling.get("factor") if kind == "linear" else None
    if stretch:
        yield "rotary_seq_len_interpolation_factor", stretch, None, "rope_scaling.factor"
    partial = scaling.get("partial_rotary_factor", settings.get("partial_rotary_factor"))
    yield "rotary_percent", float(partial) if partial else 1.0, 1.0, "partial_rotary_factor"
    if latent:
        yield "rope_type", "yarn" if kind == "yarn" else "rope", "yarn", "rope_scaling.rope_type"
    if latent and kind == "yarn":
        yield "rotary_scaling_factor", scaling.get("factor"), 40, "rope_scaling.factor"
        yield "mscale", scaling.get("mscale"), 1.0, "rope_scaling.mscale"
        yield "mscale_all_dim", scaling.get("mscale_all_dim"), 0.0, "rope_scaling.mscale_all_dim"


def _experts(settings: Settings, tensors: Mapping[str, Any]) -> Expected:
    number = next((value for name in EXPERTS if (value := settings.get(name))), None)
    if not number or not any("experts" in name for name in tensors):
        yield "num_experts", 0, 0, "num_experts"
        return
    kind, sums = settings.kind, settings.get("norm_topk_prob")
    yield "num_experts", number, 0, "num_experts"
    yield "moe_router_topk", settings.get("num_experts_per_tok"), 2, "num_experts_per_tok"
    yield "moe_ffn_hidden_size", settings.get("moe_intermediate_size"), None, "moe_intermediate_size"
    sigmoid = kind == "deepseek_v3"
    yield "moe_router_score_function", "sigmoid" if sigmoid else "softmax", "softmax", "model_type"
    yield "moe_router_enable_expert_bias", sigmoid, False, "model_type"
    if not sigmoid and kind != "mixtral":
        yield "moe_router_pre_softmax", not sums, False, "norm_topk_prob"
    if kind == "mixtral":
        yield "moe_router_pre_softmax", False, False, "model_type"
    yield "moe_router_topk_scaling_factor", settings.get("routed_scaling_factor"), 1.0, "routed_scaling_factor"
    yield "moe_shared_expert_gate", any("shared_expert_gate" in name for name in tensors), False, "shared_expert_gate"


EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


def _latent(settings: Settings, tensors: Mapping[str, Any]) -> Expected:
    latent = bool(settings.get("kv_lora_rank"))
    yield "multi_latent_attention", latent, False, "kv_lora_rank"
    for argument, key in LATENT.items() if latent else ():
        yield argument, settings.get(key), None, key


def _layout(settings: Settings, tensors: Mapping[str, Any]) -> Expected:
    yield "rotary_interleaved", False, False, "model_type"
    if settings.kind == "gemma2":
        yield "final_logit_softcapping", settings.get("final_logit_softcapping"), None, "final_logit_softcapping"
        yield "attn_logit_softcapping", settings.get("attn_logit_softcapping"), None, "attn_logit_softcapping"


def _vocabulary(args: Mapping[str, Any], settings: Settings) -> Iterator[Fact]:
    padded, vocab = args.get("padded_vocab_size"), settings.vocab
    told = "not stated" if padded is None else shown(padded)
    if not isinstance(padded, int) or padded < vocab:
        yield Fact(argument="padded_vocab_size", expected=f"at least {vocab}", found=told, key="vocab_size")
        return
    tp = MegatronArgs({**args, "padded_vocab_size": padded}).tp if "num_layers" in args else 1
    if padded % tp:
        yield Fact(argument="padded_vocab_size", expected=f"a multiple of TP {tp}", found=told, key="vocab_size")


def rope_of(settings: Settings) -> tuple[float | None, Mapping[str, Any]]:
    """The base and the scaling, in the old spelling of config.json or in that of transformers 5."""
    given = settings.raw.get("rope_parameters")
    given = given if isinstance(given, Mapping) else {}
    full = given.get("full_attention", given)
    theta = full.get("rope_theta", settings.raw.get("rope_theta", settings.get("rope_theta")))
    old = settings.raw.get("rope_scaling")
    scaling = full if "rope_type" in full else old if isinstance(old, Mapping) else {}
    return (float(theta) if isinstance(theta, (int, float)) else None), scaling


def require_args(args: Mapping[str, Any]) -> None:
    """UsageError when a checkpoint holds no arguments: nothing then says how its tensors lie."""
    if not args:
        raise UsageError("the checkpoint holds no args", remedy="save it with Megatron, or convert again")


def shown(value: Any) -> str:
    """A value in a sentence."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _same(value: Any, expected: Any) -> bool:
    if isinstance(expected, (list, tuple)):
        return isinstance(value, (list, tuple)) and list(value) == list(expected)
    if isinstance(expected, bool) or isinstance(value, bool):
        return bool(value) == bool(expected)
    if isinstance(expected, (int, float)) and isinstance(value, (int, float)):
        return math.isclose(value, expected, rel_tol=1e-6, abs_tol=0.0)
    return bool(value == expected) or (not value and not expected)
