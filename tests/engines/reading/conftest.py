"""Small engines of every kind, laid out as their writers lay them out. None of them was built by its runtime."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

METADATA = {
    "AOTI_DEVICE_KEY": "cpu",
    "AOTI_PLATFORM": "linux",
    "AOTI_MACHINE": "x86_64",
    "AOTI_CPU_ISA": "AVX2",
    "AOTI_COMPUTE_CAPABILITY": "",
}


@pytest.fixture(scope="session")
def shared_object(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A real shared object of this machine's compiler, which asks for libm and for versions of the C library."""
    folder = tmp_path_factory.mktemp("so")
    source = folder / "x.c"
    source.write_text('#include <math.h>\n#include <stdio.h>\ndouble f(double x){puts("x");return cos(x);}\n')
    out = folder / "x.so"
    words = ["gcc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", str(out), str(source), "-lm"]
    subprocess.run(words, check=True)
    return out.read_bytes()


@pytest.fixture
def make_package(tmp_path: Path, shared_object: bytes) -> Any:
    """Writes a package with some metadata and code, laid out as torch does."""

    def make(metadata: object = None, code: bytes | None = None, *, how: int = zipfile.ZIP_STORED) -> Path:
        path = tmp_path / "x.pt2"
        top = "x/data/aotinductor/model/c0ffee.wrapper"
        told = METADATA if metadata is None else metadata
        with zipfile.ZipFile(path, "w", how) as archive:
            archive.writestr(f"{top}_metadata.json", told if isinstance(told, bytes) else json.dumps(told))
            archive.writestr(f"{top}.so", shared_object if code is None else code)
        return path

    return make


@pytest.fixture
def trtllm_folder(tmp_path: Path) -> Path:
    """Two ranks of TensorRT-LLM; the plans are made up, the configuration has the shape of a real one."""
    folder = tmp_path / "engine"
    folder.mkdir()
    config = {
        "version": "1.2.1",
        "pretrained_config": {
            "architecture": "LlamaForCausalLM",
            "dtype": "bfloat16",
            "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
            "mapping": {"world_size": 2, "tp_size": 2, "pp_size": 1},
        },
        "build_config": {
            "max_batch_size": 64,
            "max_input_len": 1024,
            "max_seq_len": 2048,
            "plugin_config": {"gemm_plugin": "auto", "paged_kv_cache": True, "lora_plugin": None},
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    for rank in range(2):
        (folder / f"rank{rank}.engine").write_bytes(b"made-up plan")
    return folder
