"""The examples about engines on a tiny model: built, broken by somebody else, refused, built again, measured."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built_engines import tiny_model

from hfbench.engines.builders.onnx import DATA
from hfbench.engines.manifest import MANIFEST

for name in ("torch", "transformers", "onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(name)

Hfbench = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = "  - demo: {save_as: made, timeout: 10m}\n    expect:\n      - made.tensors == 272\n"


@pytest.fixture
def run(hfbench: Hfbench, home: Path, tmp_path: Path) -> Callable[[str], tuple[int, list[dict[str, Any]], str]]:
    """Run an example for a tiny model and the builder that is quickest; the rest of it is as it stands."""
    model = tiny_model(tmp_path / "tiny", layers=1)

    def go(example: str) -> tuple[int, list[dict[str, Any]], str]:
        text = (EXAMPLES / example).read_text().replace(DEMO, "")
        text = text.replace("model: demo", f"model: {model}").replace("builder: aoti", "builder: onnx")
        text = text.replace("budget: 20", "budget: 1").replace("budget: 5", "budget: 1")
        script = tmp_path / example
        script.write_text(text)
        done = hfbench("--script", script, cwd=tmp_path, timeout=300)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    return go


def statuses(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["action"], each["status"]) for each in events if each["event"] == "step_finished"]


def test_built_and_refused_where_it_must_be_then_broken_refused_built_again_and_measured(
    run: Callable[[str], tuple[int, list[dict[str, Any]], str]], tmp_path: Path
) -> None:
    code, events, told = run("engine.hfb.yaml")
    assert code == 0, told
    assert statuses(events) == [
        ("engine.build", "ok"),
        ("engine.check", "ok"),
        ("engine.check", "ok"),
        ("engine.check", "refused"),
        ("engine.build", "refused"),
        ("bench.generate", "refused"),
        ("bench.modes", "ok"),
        ("bench.generate", "ok"),
    ]
    engine = tmp_path / "engines" / "smol"
    os.truncate(engine / DATA, (engine / DATA).stat().st_size - 1)
    before = (engine / MANIFEST).read_bytes()
    code, events, told = run("engine-again.hfb.yaml")
    assert code == 0, told
    steps = ["engine.check", "bench.generate", "engine.build", "engine.check", "bench.generate"]
    assert statuses(events) == list(zip(steps, ["refused", "refused", "ok", "ok", "ok"], strict=True))
    after = json.loads((engine / MANIFEST).read_text())
    assert after["created"] > json.loads(before)["created"]
    assert sorted(each.name for each in engine.parent.iterdir()) == ["smol"]
