"""megatron-core itself, asked through the wall, agrees with right checkpoints alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from faulty import write_megatron
from tiny_models import Tiny

from hfbench.convert.walls.asking import Judging
from hfbench.convert.walls.forward import forward_wall
from hfbench.convert.walls.sides import sides_of
from hfbench.jobs.run import Run

pytestmark = pytest.mark.slow
FULL = pytest.mark.skipif("HFBENCH_FULL_MATRIX" not in os.environ, reason="HFBENCH_FULL_MATRIX is not set")


@pytest.mark.parametrize(
    ("name", "layout", "verdict"),
    [
        pytest.param("llama", {"tp": 2, "pp": 2, "te": True}, "proven", marks=FULL),
        pytest.param("mistral", {}, "proven", marks=FULL),
        pytest.param("qwen2_moe", {"tp": 2, "ep": 2, "te": True}, "proven", marks=FULL),
        pytest.param("gpt2", {"pp": 2}, "proven", marks=FULL),
        ("deepseek_v3", {}, "not asked"),
        ("llama", {"norm_epsilon": 1e-5}, "differs"),
        ("llama", {"tp": 2, "fault": "surplus"}, "differs"),  # which it refuses to load
    ],
    ids=str,
)
def test_verdicts(
    name: str,
    layout: dict[str, Any],
    verdict: str,
    tiny: Tiny,
    judging: Judging,
    megatron_python: Path,
    tmp_path: Path,
) -> None:
    made = write_megatron(tiny(name), tmp_path / "mg", **layout)
    found = forward_wall(judging, sides_of(tiny(name), made), Run(), megatron_python)
    assert found.core
    assert found.core.verdict == verdict, found.core.reason
    assert verdict != "proven" or found.core.relative < 1e-5
    assert ("cannot load it" in found.core.reason) == ("fault" in layout)
