"""Tiny Hugging Face folders on which conversion mistakes show.

Wide weights, norms that are not 1, biases that are not 0, two key heads of four, a vocabulary that must be padded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Tiny = Callable[[str], Path]
"""The folder of a tiny model by its name."""

SHAPE: dict[str, Any] = {
    "vocab_size": 250,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "initializer_range": 0.15,
    "tie_word_embeddings": False,
}
SCALED = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"factor": 4.0, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}
LATENT = {
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "num_key_value_heads": 4,
    "moe_intermediate_size": 48,
    "n_shared_experts": 1,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
}


def rope(theta: float, kind: str = "default", **more: float) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **more}}


EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {"num_hidden_layers": 4, **rope(500000.0)}),
    "scaled": ("LlamaConfig", {**rope(500000.0, "llama3", **SCALED)}),
    "tied": ("LlamaConfig", {**rope(10000.0), "tie_word_embeddings": True, "num_hidden_layers": 4}),
    "mistral": ("MistralConfig", {**rope(10000.0), "head_dim": 16, "sliding_window": 16}),
    "qwen2": ("Qwen2Config", rope(1e6)),
    "qwen3": ("Qwen3Config", {**rope(1e6), "head_dim": 32}),
    "mixtral": ("MixtralConfig", {**rope(1e6), "num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen2_moe": (
        "Qwen2MoeConfig",
        {**rope(1e6), **EXPERTS, "shared_expert_intermediate_size": 96, "norm_topk_prob": False},
    ),
    "qwen3_moe": ("Qwen3MoeConfig", {**rope(1e6), **EXPERTS, "head_dim": 32, "norm_topk_prob": True}),
    "deepseek_v2": (
        "DeepseekV2Config",
        {**LATENT, **rope(1e4, "yarn", **YARN, mscale=0.707, mscale_all_dim=0.707), "q_lora_rank": None}
        | {
            "topk_method": "greedy",
            "routed_scaling_factor": 1.5,
            "norm_topk_prob": False,
            "n_group": 1,
            "topk_group": 1,
        },
    ),
    "deepseek_v3": (
        "DeepseekV3Config",
        {**LATENT, **rope(1e4), "n_group": 2, "topk_group": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": True},
    ),
    "gemma": ("GemmaConfig", {**rope(10000.0), "head_dim": 32, "tie_word_embeddings": True}),
    "gemma2": (
        "Gemma2Config",
        {
            **rope(10000.0),
            "head_dim": 32,
            "tie_word_embeddings": True,
            "sliding_window": 8,
            "query_pre_attn_scalar": 20,
        },
    ),
    "gemma3": (
        "Gemma3TextConfig",
        {"head_dim": 32, "tie_word_embeddings": True, "sliding_window": 8, "query_pre_attn_scalar": 20}
        | {"layer_types": ["sliding_attention", "full_attention"]},
    ),
    "phi3": ("Phi3Config", {**rope(10000.0), "pad_token_id": 0, "sliding_window": None}),
    "gpt2": (
        "GPT2Config",
        {"n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 256, "vocab_size": 250, "n_inner": None}
        | {"initializer_range": 0.15, "tie_word_embeddings": True},
    ),
}


def make_tiny(name: str, folder: Path, *, dtype: str = "float32", **changes: Any) -> Path:
    """Write the model of that name and return its folder."""
    import torch
    import transformers

    cls, given = MODELS[name]
    shape = {} if name == "gpt2" else SHAPE
    config = getattr(transformers, cls)(**{**shape, **given, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(sum(map(ord, name)))
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        for key, value in (*model.named_parameters(), *model.named_buffers()):
            if "norm" in key or ".ln_" in key:
                value.data.uniform_(0.5, 1.5)
            if key.endswith("bias"):
                value.data.normal_(0, 0.3)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    return folder
