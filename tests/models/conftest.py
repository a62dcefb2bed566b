"""Small real checkpoints, made byte by byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

Tensors = Mapping[str, tuple[str, tuple[int, ...], int]]
"""Name to dtype, shape and bytes."""

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 16,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

FIRST: Tensors = {
    "model.embed_tokens.weight": ("BF16", (16, 8), 256),
    "model.layers.0.mlp.up_proj.weight": ("BF16", (8, 8), 128),
}
SECOND: Tensors = {"model.norm.weight": ("F32", (8,), 32), "lm_head.weight": ("BF16", (16, 8), 256)}


def safetensors(tensors: Tensors, metadata: dict[str, str] | None = None) -> bytes:
    """A whole file as the library itself would write it."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"} if metadata is None else metadata}
    end = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + bytes(end)


@pytest.fixture
def first() -> Tensors:
    return FIRST


@pytest.fixture
def file_of() -> Callable[..., bytes]:
    return safetensors


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """A folder with a configuration and one file of weights."""
    folder = tmp_path / "single"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "model.safetensors").write_bytes(safetensors({**FIRST, **SECOND}))
    return folder


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """A folder with a configuration, an index and two files of weights."""
    folder = tmp_path / "sharded"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    weight_map = {}
    for number, part in enumerate((FIRST, SECOND), 1):
        name = f"model-{number:05d}-of-00002.safetensors"
        (folder / name).write_bytes(safetensors(part))
        weight_map |= dict.fromkeys(part, name)
    index = {"metadata": {"total_size": 672}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    return folder


@pytest.fixture
def edit_json() -> Callable[..., None]:
    """Rewrite the object in a file with some keys replaced."""

    def edit(path: Path, **changes: Any) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return edit


@pytest.fixture
def cache(tmp_path: Path, single: Path) -> Path:
    """A Hugging Face cache with org/tiny at main, whose files are links to blobs."""
    root = tmp_path / "hub"
    repo = root / "models--org--tiny"
    snapshot = repo / "snapshots" / ("1" * 40)
    for folder in (repo / "blobs", repo / "refs", snapshot):
        folder.mkdir(parents=True)
    for number, name in enumerate(("config.json", "model.safetensors")):
        (repo / "blobs" / f"{number:064d}").write_bytes((single / name).read_bytes())
        (snapshot / name).symlink_to(f"../../blobs/{number:064d}")
    (repo / "refs" / "main").write_text("1" * 40)
    return root
