"""A small model to put on a hub, written without torch."""

from __future__ import annotations

import json
import struct
from math import prod
from pathlib import Path

LAYER = {
    "self_attn.q_proj.weight": [64, 64],
    "self_attn.k_proj.weight": [32, 64],
    "self_attn.v_proj.weight": [32, 64],
    "self_attn.o_proj.weight": [64, 64],
    "mlp.gate_proj.weight": [128, 64],
    "mlp.up_proj.weight": [128, 64],
    "mlp.down_proj.weight": [64, 128],
    "input_layernorm.weight": [64],
    "post_attention_layernorm.weight": [64],
}
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}


def safetensors(shapes: dict[str, list[int]], *, metadata: dict[str, str] | None = None) -> bytes:
    """A file of bfloat16 ones."""
    header: dict[str, object] = {"__metadata__": {"format": "pt", **(metadata or {})}}
    at = 0
    for name, shape in shapes.items():
        size = 2 * prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + b"\x80\x3f" * (at // 2)


def write_model(folder: Path) -> Path:
    """A small Llama in two shards and a README."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = [
        {"model.embed_tokens.weight": [256, 64], **{f"model.layers.0.{k}": v for k, v in LAYER.items()}},
        {
            **{f"model.layers.1.{k}": v for k, v in LAYER.items()},
            "model.norm.weight": [64],
            "lm_head.weight": [256, 64],
        },
    ]
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for name, shapes in zip(names, shards, strict=True):
        (folder / name).write_bytes(safetensors(shapes))
    where = {tensor: name for name, shapes in zip(names, shards, strict=True) for tensor in shapes}
    total = sum(2 * prod(shape) for shapes in shards for shape in shapes.values())
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "generation_config.json").write_text('{"do_sample": true, "temperature": 0.7}')
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# Small\n")
    return folder
