"""A whole small model, and edits that break one thing in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 16,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}

POSSIBLE_COMMIT = "1" * 40
"""What a commit looks like."""

Tensors = Mapping[str, tuple[str, list[int]]]

LAYER: Tensors = {
    "self_attn.q_proj.weight": ("BF16", [8, 8]),
    "self_attn.k_proj.weight": ("BF16", [4, 8]),
    "self_attn.v_proj.weight": ("BF16", [4, 8]),
    "self_attn.o_proj.weight": ("BF16", [8, 8]),
    "mlp.gate_proj.weight": ("BF16", [16, 8]),
    "mlp.up_proj.weight": ("BF16", [16, 8]),
    "mlp.down_proj.weight": ("BF16", [8, 16]),
    "input_layernorm.weight": ("BF16", [8]),
    "post_attention_layernorm.weight": ("BF16", [8]),
}
TENSORS: Tensors = {
    "model.embed_tokens.weight": ("BF16", [16, 8]),
    **{f"model.layers.0.{name}": value for name, value in LAYER.items()},
    "model.norm.weight": ("BF16", [8]),
    "lm_head.weight": ("BF16", [16, 8]),
}

TEMPLATE = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}"

TOKENIZER_CONFIG: dict[str, Any] = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "model_max_length": 32,
    "chat_template": TEMPLATE,
}

_BITS = {"BF16": 16, "F16": 16, "F32": 32, "U8": 8, "I32": 32, "F8_E4M3": 8}

Edit = Callable[[Path], object]


def added(number: int, content: str) -> dict[str, Any]:
    """An added token as tokenizer.json has it."""
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **plain, "special": True}


def tokenizer(tokens: int = 16, extra: list[dict[str, Any]] | None = None, **vocab: int) -> dict[str, Any]:
    """The object of a tokenizer.json whose vocabulary is single words."""
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"w{number}": number for number in range(3, tokens)}, **vocab}
    special = [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")]
    return {
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder")),
        "version": "1.0",
        "added_tokens": [*special, *(extra or [])],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
    }


def weights(tensors: Tensors, metadata: object = None, fill: Mapping[str, bytes] | None = None) -> bytes:
    """A file of safetensors; `fill` gives the bytes of some tensors, the others are zero."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"} if metadata is None else metadata}
    if metadata == {}:
        del header["__metadata__"]
    data = b""
    for name, (dtype, shape) in tensors.items():
        size = _BITS[dtype] // 8
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += (fill or {}).get(name, b"").ljust(size, b"\0")
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def make(folder: Path) -> Path:
    """A model that nothing can be said against."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "model.safetensors").write_bytes(weights(TENSORS))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))
    return folder


def config(drop: str = "", **changes: Any) -> Edit:
    """Rewrite config.json with some keys replaced and others dropped."""
    kept = {key: value for key, value in {**CONFIG, **changes}.items() if key not in drop.split()}
    return put("config.json", kept)


def tokens(drop: str = "", **changes: Any) -> Edit:
    """The same for tokenizer_config.json."""
    kept = {key: value for key, value in {**TOKENIZER_CONFIG, **changes}.items() if key not in drop.split()}
    return put("tokenizer_config.json", kept)


def put(name: str, content: object) -> Edit:
    """Write a file: bytes and text as they are, everything else as JSON."""

    def edit(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else content if isinstance(content, str) else json.dumps(content)
        path.write_bytes(raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogateescape"))

    return edit


def stored(changes: Tensors | None = None, drop: str = "", **more: Any) -> Edit:
    """Write the weights anew with some tensors replaced and others dropped."""
    kept = {name: value for name, value in {**TENSORS, **(changes or {})}.items() if name not in drop.split()}
    return put("model.safetensors", weights(kept, **more))


def gone(name: str) -> Edit:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


def linked(name: str, target: str) -> Edit:
    """Replace a file by a link."""

    def edit(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return edit


def fifo(name: str) -> Edit:
    """Replace a file by a FIFO."""

    def edit(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return edit


def sharded(drop: str = "", **index: Any) -> Edit:
    """Replace the weights by two shards and an index with some keys replaced; `drop` names files to leave out."""

    def edit(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        names = list(TENSORS)
        files = {"model-00001-of-00002.safetensors": names[:6], "model-00002-of-00002.safetensors": names[6:]}
        for file, held in files.items():
            if file not in drop.split():
                (folder / file).write_bytes(weights({name: TENSORS[name] for name in held}))
        weight_map = {name: file for file, held in files.items() for name in held}
        whole = {"metadata": {"total_size": 1712}, "weight_map": weight_map}
        for key, value in index.items():
            whole[key] = {**whole.get(key, {}), **value} if isinstance(value, dict) and value else value
        if "model.safetensors.index.json" not in drop.split():
            (folder / "model.safetensors.index.json").write_text(json.dumps(whole))

    return edit


def all_of(*edits: Edit) -> Edit:
    """Several edits, one after another."""

    def edit(folder: Path) -> None:
        for each in edits:
            each(folder)

    return edit


def same(folder: Path) -> None:
    """No edit: the model as it is."""
