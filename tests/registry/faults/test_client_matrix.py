"""Older stock clients, each in an environment of its own: they speak to the hub as today's do."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from hub_process import HubProcess

CLIENTS = {"0.24": "huggingface_hub==0.24.*", "0.36": "huggingface_hub==0.36.*", "1": "huggingface_hub>=1,<2"}
KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hfbench-tests" / "clients"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    header = json.dumps({"w": {"dtype": "BF16", "shape": [1 << 20], "data_offsets": [0, 2 << 20]}}).encode()
    weights = random.Random(0).randbytes(2 << 20)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + weights)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# A model\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "x.txt").write_text("text")
    return folder


@pytest.fixture(scope="module", params=CLIENTS)
def python(request: pytest.FixtureRequest) -> str:
    """The Python of an environment with that client, kept from run to run."""
    folder = KEPT / f"{request.param}-python{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "whole").exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", "--timeout", "10", "--retries", "1"]
        done = subprocess.run([*command, CLIENTS[request.param]], capture_output=True, text=True, timeout=240)
        if done.returncode:
            pytest.skip(f"{CLIENTS[request.param]} cannot be installed here: {done.stderr.strip()[-200:]}")
        (folder / "whole").touch()
    return str(python)


@pytest.mark.parametrize("without_xet", [False, True], ids=["xet", "lfs"])
def test_an_older_client_does_all_it_did(
    served: HubProcess, python: str, model: Path, tmp_path: Path, without_xet: bool
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))}
    environment |= {"HF_ENDPOINT": served.url, "HF_TOKEN": served.writer, "HF_HOME": str(tmp_path / "home")}
    environment |= {"HF_HUB_DISABLE_TELEMETRY": "1"} | ({"HF_HUB_DISABLE_XET": "1"} if without_xet else {})
    script = Path(__file__).parents[1] / "any_client.py"
    words = [python, str(script), "team/matrix", str(model), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "well"), done.stdout + done.stderr
