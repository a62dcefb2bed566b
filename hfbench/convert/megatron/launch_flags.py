"""What `--use-checkpoint-args` does not take from a checkpoint, as words of Megatron-LM's command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

VALUES = (
    ("norm_epsilon", "--norm-epsilon"),
    ("make_vocab_size_divisible_by", "--make-vocab-size-divisible-by"),
    ("decoder_first_pipeline_num_layers", "--decoder-first-pipeline-num-layers"),
    ("decoder_last_pipeline_num_layers", "--decoder-last-pipeline-num-layers"),
    ("rotary_seq_len_interpolation_factor", "--rotary-seq-len-interpolation-factor"),
    ("moe_router_num_groups", "--moe-router-num-groups"),
    ("moe_router_group_topk", "--moe-router-group-topk"),
)
SWITCHES = (
    ("qk_layernorm", "--qk-layernorm"),
    ("multi_latent_attention", "--multi-latent-attention"),
    ("moe_shared_expert_gate", "--moe-shared-expert-gate"),
    ("openai_gelu", "--openai-gelu"),
    ("bf16", "--bf16"),
    ("fp16", "--fp16"),
)
LATENT = (
    ("q_lora_rank", "--q-lora-rank"),
    ("kv_lora_rank", "--kv-lora-rank"),
    ("qk_head_dim", "--qk-head-dim"),
    ("qk_pos_emb_head_dim", "--qk-pos-emb-head-dim"),
    ("v_head_dim", "--v-head-dim"),
    ("rope_type", "--rope-type"),
    ("rotary_scaling_factor", "--rotary-scaling-factor"),
    ("mscale", "--mscale"),
    ("mscale_all_dim", "--mscale-all-dim"),
)
"""Multi-latent attention: none of it is taken from the checkpoint."""

RECOMPUTE = ("--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1")
"""What gradient checkpointing of every layer is called in Megatron."""


def launch_flags(args: Mapping[str, Any], *, recompute: bool = False) -> tuple[str, ...]:
    """The words, loading of weights alone included; `recompute` for a model that checkpoints its gradients."""
    return tuple(_words(args, recompute))


def _words(args: Mapping[str, Any], recompute: bool) -> Iterator[str]:
    yield from ("--use-checkpoint-args", "--no-load-optim", "--no-load-rng", "--finetune")
    yield from ("--ckpt-format", str(args["ckpt_format"]), "--transformer-impl", str(args["transformer_impl"]))
    for kind in ("tensor", "pipeline", "expert"):
        degree = args[f"{kind}_model_parallel_size"]
        if degree > 1 or kind != "expert":
            yield from (f"--{kind}-model-parallel-size", str(degree))
    for name, flag in (*VALUES, *(LATENT if args.get("multi_latent_attention") else ())):
        if args.get(name) is not None:
            yield from (flag, _shown(args[name]))
    for name, flag in SWITCHES:
        if args.get(name):
            yield flag
    if args.get("use_rope_scaling"):
        yield from ("--use-rope-scaling", "--rope-scaling-factor", _shown(args["rope_scaling_factor"]))
    if args.get("window_size"):
        yield from ("--window-size", ",".join(map(str, args["window_size"])))
    if args.get("add_qkv_bias") and not args.get("add_bias_linear"):
        yield from ("--add-qkv-bias", "--disable-bias-linear")
    if recompute:
        yield from RECOMPUTE


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) and value >= 1e-3 else str(value)
