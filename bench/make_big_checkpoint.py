"""Makes a sharded mixture-of-experts checkpoint that costs almost no disk: real headers, data that is a hole."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

BITS = {"BF16": 16, "F8_E4M3": 8, "F32": 32}

Tensor = tuple[str, str, tuple[int, ...]]


def tensors(layers: int = 61, experts: int = 256, hidden: int = 7168, inner: int = 2048) -> Iterator[Tensor]:
    """Name, dtype and shape as a block-quantised FP8 model of that size has them: 90,427 for the defaults."""
    yield "model.embed_tokens.weight", "BF16", (129_280, hidden)
    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        yield f"{prefix}.input_layernorm.weight", "BF16", (hidden,)
        yield f"{prefix}.post_attention_layernorm.weight", "BF16", (hidden,)
        for name, rows, columns in _attention(hidden):
            yield from _quantised(f"{prefix}.self_attn.{name}", rows, columns)
        yield f"{prefix}.self_attn.q_a_layernorm.weight", "BF16", (1536,)
        yield f"{prefix}.self_attn.kv_a_layernorm.weight", "BF16", (512,)
        if layer < 3:
            yield from _feed_forward(f"{prefix}.mlp", hidden, 9 * inner)
            continue
        yield f"{prefix}.mlp.gate.weight", "BF16", (experts, hidden)
        yield f"{prefix}.mlp.gate.e_score_correction_bias", "F32", (experts,)
        for expert in range(experts):
            yield from _feed_forward(f"{prefix}.mlp.experts.{expert}", hidden, inner)
        yield from _feed_forward(f"{prefix}.mlp.shared_experts", hidden, inner)
    yield "model.norm.weight", "BF16", (hidden,)
    yield "lm_head.weight", "BF16", (129_280, hidden)


def laid_out(part: list[Tensor]) -> list[Tensor]:
    """In the order in which the safetensors library writes a file: larger elements first, then by name."""
    return sorted(part, key=lambda tensor: (-BITS[tensor[1]], tensor[0]))


def make(folder: Path, shards: int = 163, layers: int = 61, experts: int = 256) -> int:
    """Write the checkpoint into a new folder; returns how many tensors it has."""
    folder.mkdir(parents=True)
    every = list(tensors(layers, experts))
    weight_map: dict[str, str] = {}
    total = 0
    for number in range(shards):
        part = every[number * len(every) // shards : (number + 1) * len(every) // shards]
        name = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        total += write_sparse(folder / name, laid_out(part))
        weight_map.update((tensor, name) for tensor, _, _ in part)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    config = {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": layers}
    (folder / "config.json").write_text(json.dumps(config))
    return len(every)


def write_sparse(path: Path, part: list[Tensor]) -> int:
    """One safetensors file whose data was never written; returns its data bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, dtype, shape in part:
        begin, size = end, BITS[dtype]
        for length in shape:
            size *= length
        end += size // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    return end


def _attention(hidden: int) -> Iterator[tuple[str, int, int]]:
    yield "q_a_proj", 1536, hidden
    yield "q_b_proj", 24_576, 1536
    yield "kv_a_proj_with_mqa", 576, hidden
    yield "kv_b_proj", 32_768, 512
    yield "o_proj", hidden, 16_384


def _feed_forward(prefix: str, hidden: int, inner: int) -> Iterator[Tensor]:
    yield from _quantised(f"{prefix}.gate_proj", inner, hidden)
    yield from _quantised(f"{prefix}.up_proj", inner, hidden)
    yield from _quantised(f"{prefix}.down_proj", hidden, inner)


def _quantised(name: str, rows: int, columns: int) -> Iterator[Tensor]:
    yield f"{name}.weight", "F8_E4M3", (rows, columns)
    yield f"{name}.weight_scale_inv", "F32", (-(-rows // 128), -(-columns // 128))


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), *map(int, sys.argv[2:])), "tensors")
