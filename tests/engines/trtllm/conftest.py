"""A small llama, an environment whose TensorRT-LLM is a recording, and two made-up GPUs of compute capability 9.0."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from small_model import config, make

HERE = Path(__file__).parent
FAKE_NVML = HERE.parents[1] / "fakenvml" / "fakenvml.c"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A llama of two layers whose weights are zeros: nothing here computes with them. Its context is 4096."""
    folder = make(tmp_path / "model")
    config(max_position_embeddings=4096)(folder)
    return folder


@pytest.fixture(scope="session")
def two_gpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an NVML that plays two cards."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to build the NVML that plays a part")
    folder = tmp_path_factory.mktemp("nvml")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", library, FAKE_NVML], check=True)
    return folder


def recording_environment(folder: Path, version: str = "1.2.1+recording") -> Path:
    """An interpreter that tells of TensorRT-LLM, with the recordings as its programs; the path of its python."""
    site, programs = folder / "site", folder / "bin"
    for name, number in (("tensorrt_llm", version), ("tensorrt", "10.14.1.48")):
        info = site / f"{name}-{number}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {number}\n")
    programs.mkdir()
    for name, words in (
        ("python", f'PYTHONPATH="{site}" exec "{sys.executable}" -S "$@"'),
        ("trtllm-build", f'exec "{sys.executable}" "{HERE / "recording_trtllm_build.py"}" "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{words}\n")
        (programs / name).chmod(0o755)
    examples = folder / "examples"
    for script in ("models/core/llama/convert_checkpoint.py", "quantization/quantize.py"):
        (examples / script).parent.mkdir(parents=True)
        shutil.copyfile(HERE / "recording_convert_checkpoint.py", examples / script)
    return programs / "python"


@dataclass(frozen=True)
class Bench:
    """A home with one declared environment; `build` runs engine.build in a process of its own."""

    home: Path
    environment: dict[str, str]
    model: Path
    out: Path

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """The command line of hfbench."""
        command = [sys.executable, "-m", "hfbench", *words]
        env = {**self.environment, **more}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    def build(self, *words: str, **more: str) -> tuple[int, dict[str, Any]]:
        """The exit code and what it told as JSON, of a build with shapes that the model has."""
        return self.builds([words], **more)[0]

    def builds(self, cases: Sequence[Sequence[str]], **more: str) -> list[tuple[int, dict[str, Any]]]:
        """The same for several in one process, one after the other."""
        done = subprocess.run(
            [sys.executable, str(HERE / "build_child.py"), json.dumps([self._values(words) for words in cases])],
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return [(code, told) for code, told in json.loads(done.stdout.splitlines()[-1])]

    def _values(self, words: Sequence[str]) -> dict[str, Any]:
        told: dict[str, Any] = {"model": str(self.model), "out": str(self.out), "builder": "trtllm"}
        told |= {"context": 1024, "max_prompt": 512, "device": "cuda:0"}
        for word in words:
            name, _, value = word.partition("=")
            if name == "set":
                told.setdefault("set", []).append(value)
            else:
                told[name] = int(value) if value.isdecimal() else value
        return told

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the engine that was built."""
        told: dict[str, Any] = json.loads((self.out / "hfbench-engine.json").read_text())
        return told


@pytest.fixture
def bench(tmp_path: Path, model: Path, two_gpus: Path) -> Callable[..., Bench]:
    """Make a bench whose TensorRT-LLM has a version; None for a home without any."""

    def made(version: str | None = "1.2.1+recording") -> Bench:
        home = tmp_path / "home"
        (home / "config").mkdir(parents=True)
        environment = {
            **{name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"},
            "HFBENCH_HOME": str(home),
            "LD_LIBRARY_PATH": str(two_gpus),
            "TRTLLM_EXAMPLES": str(tmp_path / "trtllm" / "examples"),
        }
        if version:
            python = recording_environment(tmp_path / "trtllm", version)
            (home / "config" / "config.toml").write_text(f'[environments.trtllm]\npython = "{python}"\n')
        return Bench(home=home, environment=environment, model=model, out=tmp_path / "engine")

    return made
