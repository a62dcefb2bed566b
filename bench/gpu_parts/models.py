"""A model on the card: made here with random weights, since there may be no network; decoded, verified, loaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from gpu_parts.setup import Setup, perform, slim, with_model

SIZES = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}
"""A llama of 1.04 billion parameters, 2.1 GB in bf16: decoding one sequence is a matter of bandwidth."""
TINY = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 64,
}


def make(setup: Setup) -> dict[str, Any]:
    """Write the model's folder."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = TINY if setup.dry else SIZES
    config = LlamaConfig(**sizes, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=True)
    torch.manual_seed(0)
    with torch.device(setup.device):
        model = LlamaForCausalLM(config).to(torch.bfloat16 if not setup.dry else torch.float32)
    model.save_pretrained(setup.model)
    size = sum(file.stat().st_size for file in setup.model.glob("*.safetensors"))
    return {"sizes": sizes, "parameters": sum(each.numel() for each in model.parameters()), "bytes": size}


def decode(mode: str) -> Callable[[Setup], dict[str, Any]]:
    """A part that decodes in one mode, through bench.generate."""

    def part(setup: Setup) -> dict[str, Any]:
        few = {"prompt": 8, "new_tokens": 4, "budget": 0.1, "warmup": 1, "max_iterations": 3}
        usual = {"prompt": 512, "new_tokens": 128, "budget": 8.0, "warmup": 2, "max_iterations": 30}
        words = few if setup.dry else usual
        result = perform("bench.generate", model=with_model(setup), device=setup.device, mode=mode, **words)
        size = sum(file.stat().st_size for file in setup.model.glob("*.safetensors"))
        return {"tpot": result["metrics"]["tpot"]["p50"], "weight_bytes": size, "result": slim(result)}

    return part


def graph_verify(setup: Setup) -> dict[str, Any]:
    """graph.verify of the model; without a GPU it plays a tape."""
    return {"result": slim(perform("graph.verify", model=with_model(setup), device=setup.device))}


def load(setup: Setup) -> dict[str, Any]:
    """bench.load of the model, from the disk its folder is on to the device."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return {"result": slim(perform("bench.load", model=with_model(setup), device=setup.device))}
