"""The counts of transformers itself, on the meta device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hfbench.estimate.architecture import Architecture

pytestmark = pytest.mark.slow

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 120,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "gemma2": {},
    "gemma3_text": {},
    "olmo2": {},
    "phi3": {},
    "phi": {},
    "glm4": {},
    "stablelm": {},
    "starcoder2": {},
    "cohere": {"use_qk_norm": True},
    "nemotron": {},
    "gpt_neox": {},
    "gptj": {"n_inner": 96},
    "bloom": {},
    "opt": {"ffn_dim": 96, "word_embed_proj_dim": 32},
    "mixtral": {"num_local_experts": 4},
    "qwen2_moe": {"num_experts": 4, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 48},
    "qwen3_moe": {"num_experts": 4, "moe_intermediate_size": 32, "mlp_only_layers": [1]},
    "gpt_oss": {"num_local_experts": 4},
    "jamba": {"num_experts": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8},
    "lfm2": {"layer_types": ["conv", "full_attention", "conv", "full_attention"]},
    "mamba": {"state_size": 8},
}


@pytest.mark.parametrize("kind", CASES)
def test_counts_are_those_of_the_class(built: Callable[[dict[str, Any]], Architecture], kind: str) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(kind, **SMALL, **CASES[kind])
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    named = {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values()}
    parameters = {id(each): each.numel() for each in model.parameters()}
    told = {name: value for name, value in config.to_dict().items() if _plain(value)}
    found = built({**told, "model_type": kind, "architectures": [type(model).__name__]})
    assert found.parameters == sum(parameters.values())
    assert found.tensors == len(named)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, list))
