"""`hfbench env`: two lines that make stock tools use a hub, without the secret in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_lab import Lab

Hfbench = Callable[..., Any]

ASK = f"{sys.executable} -c 'from huggingface_hub import whoami; print(whoami()[\"name\"])'"


def told_by_shell(lines: str, **env: str) -> str:
    """What a stock client says after a shell took the lines."""
    done = subprocess.run(
        ["sh", "-eu", "-c", f"{lines}\n{ASK}"], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_stock_client_is_who_the_token_says(lab_settings: Lab, hfbench: Hfbench) -> None:
    done = hfbench("env", "--endpoint", "lab")
    assert done.stdout == f'export HF_ENDPOINT={lab_settings.url}\nexport HF_TOKEN="${{LAB_TOKEN}}"\n'
    assert lab_settings.hub.writer not in done.stdout
    assert told_by_shell(done.stdout) == "writer"


def test_transformers_loads_a_private_model_by_nothing_but_the_two_lines(lab_settings: Lab, hfbench: Hfbench) -> None:
    lines = hfbench("env", "--endpoint", "lab").stdout
    code = "from transformers import AutoModelForCausalLM as A; print(A.from_pretrained('team/small').num_parameters())"
    done = subprocess.run(["sh", "-euc", f'{lines}\nexec {sys.executable} -c "{code}"'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    weights = json.loads((lab_settings.model / "model.safetensors.index.json").read_text())["metadata"]["total_size"]
    assert int(done.stdout) == weights // 2


def test_a_token_in_a_file_is_read_by_the_shell(
    lab: Lab, settings: Callable[[str], None], tmp_path: Path, hfbench: Hfbench
) -> None:
    place = tmp_path / "it's here"
    place.write_text(lab.hub.reader + "\n")
    settings(f'[endpoints.lab]\nurl = "{lab.url}"\ntoken_file = "{place}"\n')
    done = hfbench("env", "--endpoint", "lab")
    assert lab.hub.reader not in done.stdout
    assert told_by_shell(done.stdout) == "reader"


def test_the_secret_itself_is_shown_on_request_and_never_kept_by_a_job(lab_settings: Lab, hfbench: Hfbench) -> None:
    done = hfbench("env", "--endpoint", "lab", "--show")
    assert f"export HF_TOKEN={lab_settings.hub.writer}" in done.stdout.splitlines()
    assert told_by_shell(done.stdout, LAB_TOKEN="") == "writer"
    job = json.loads(hfbench("env", "--endpoint", "lab", "--show", "--detach", "--json").stdout)
    assert "--show would keep the token" in hfbench("jobs", "wait", job["job"]).stdout
    assert not any(
        lab_settings.hub.writer in path.read_text(errors="replace")
        for path in Path(job["directory"]).rglob("*")
        if path.is_file()
    )


def test_without_a_token_an_old_one_is_taken_away(hfbench: Hfbench, monkeypatch: pytest.MonkeyPatch) -> None:
    done = hfbench("env", "--endpoint", "http://lab:8000")
    assert done.stdout == "export HF_ENDPOINT=http://lab:8000\nunset HF_TOKEN\n"
    assert hfbench("env", "--endpoint", "http://lab:8000", "--show").returncode == 4
