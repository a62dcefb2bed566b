"""megatron-core itself agrees with right checkpoints alone. HFBENCH_TEST_MEGATRON names its Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from faulty import write_megatron
from tiny_models import Tiny

from hfbench.convert.walls.asking import Judging
from hfbench.convert.walls.core import python_of
from hfbench.convert.walls.forward import forward_wall
from hfbench.convert.walls.sides import sides_of
from hfbench.jobs.run import Run

PYTHON = os.environ.get("HFBENCH_TEST_MEGATRON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="HFBENCH_TEST_MEGATRON names no Python with megatron-core"),
]


@pytest.mark.parametrize(
    ("name", "layout", "verdict"),
    [
        ("llama", {"tp": 2, "pp": 2, "te": True}, "proven"),
        ("mistral", {}, "proven"),
        ("qwen2_moe", {"tp": 2, "ep": 2, "te": True}, "proven"),
        ("gpt2", {"pp": 2}, "proven"),
        ("deepseek_v3", {}, "not asked"),
        ("llama", {"norm_epsilon": 1e-5}, "differs"),
        ("llama", {"tp": 2, "fault": "missing"}, "differs"),
    ],
    ids=str,
)
def test_verdicts(
    name: str, layout: dict[str, Any], verdict: str, tiny: Tiny, judging: Judging, tmp_path: Path
) -> None:
    made = write_megatron(tiny(name), tmp_path / "mg", **layout)
    found = forward_wall(judging, sides_of(tiny(name), made), Run(), python_of(PYTHON))
    if layout.get("fault"):
        assert found.verdict == verdict
        return
    assert found.core
    assert found.core.verdict == verdict, found.core.reason
    assert verdict != "proven" or found.core.relative < 1e-5
