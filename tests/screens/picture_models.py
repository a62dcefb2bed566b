"""Model folders for pictures: real headers, data that is a hole."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1}


def write_shard(path: Path, tensors: list[tuple[str, str, tuple[int, ...]]]) -> None:
    """A safetensors file with these tensors, whose data takes no disk."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, dtype, shape in tensors:
        size = BYTES[dtype]
        for extent in shape:
            size *= extent
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def llama(folder: Path, *, layers: int = 4, shards: int = 2, missing: bool = False) -> Path:
    """A llama of some layers in shards with an index; the last shard may be missing."""
    folder.mkdir(parents=True)
    hidden, inter, vocab = 576, 1536, 49152
    tensors: list[tuple[str, str, tuple[int, ...]]] = [("model.embed_tokens.weight", "BF16", (vocab, hidden))]
    for n in range(layers):
        at = f"model.layers.{n}."
        tensors += [(f"{at}self_attn.{p}_proj.weight", "BF16", (hidden if p in "qo" else 192, hidden)) for p in "qkvo"]
        tensors += [(f"{at}mlp.{p}_proj.weight", "BF16", (inter, hidden)) for p in ("gate", "up")]
        tensors += [(f"{at}mlp.down_proj.weight", "BF16", (hidden, inter))]
        tensors += [(f"{at}{p}_layernorm.weight", "F32", (hidden,)) for p in ("input", "post_attention")]
    tensors.append(("model.norm.weight", "F32", (hidden,)))
    per = -(-len(tensors) // shards)
    where = {}
    for number in range(shards):
        name = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        part = tensors[number * per : (number + 1) * per]
        where |= {tensor[0]: name for tensor in part}
        if not (missing and number == shards - 1):
            write_shard(folder / name, part)
    index = {"metadata": {}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inter,
        "num_hidden_layers": layers,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": vocab,
        "max_position_embeddings": 8192,
        "rope_theta": 100000,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "eos_token_id": 2,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3}
    added = [{"id": i, "content": text, "special": True} for text, i in list(vocabulary.items())[:3]]
    tokenizer = {"version": "1.0", "added_tokens": added, "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "chat_template": "{{ messages }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    return folder
