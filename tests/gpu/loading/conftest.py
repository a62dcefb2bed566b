"""A checkpoint of two shards with odd dtypes, as safetensors and as a pickle of the same tensors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 4 MiB; two pages and more in each shard."""
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    folder = tmp_path_factory.mktemp("loading")
    torch.manual_seed(5)
    tensors = {f"layers.{number}.w": torch.randn(256, 1024).to(torch.bfloat16) for number in range(8)}
    tensors |= {
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 4),
        "bytes": torch.arange(7, dtype=torch.uint8),
        "flags": torch.tensor([True, False]),
        "eight": torch.randn(33).to(torch.float8_e4m3fn),
    }
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[:6], "model-00002-of-00002.safetensors": names[6:]}
    for file, held in shards.items():
        save_file({name: tensors[name] for name in held}, folder / file)
    weight_map = {name: file for file, held in shards.items() for name in held}
    index = {"metadata": {"total_size": sum(each.numel() * each.element_size() for each in tensors.values())}}
    (folder / "model.safetensors.index.json").write_text(json.dumps({**index, "weight_map": weight_map}))
    torch.save(tensors, folder / "pytorch_model.bin")
    return folder
