"""What a process loads: the import contracts look at the graph, these tests at `sys.modules`."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "transformers", "triton", "numpy", "tokenizers", "safetensors", "huggingface_hub", "pydantic"}
HEAVY |= {"jinja2"}
FRONT = {"textual", "rich", "yaml", "pynvml"}
LIGHT = [
    "hfbench.cli",
    "hfbench.worker",
    "hfbench.config",
    "hfbench.doctor.run",
    "hfbench.provenance.gate",
    "hfbench.actions.registry",
    "hfbench.actions.schema",
    "hfbench.commands.perform",
    "hfbench.commands.jobs",
    "hfbench.commands.docs",
    "hfbench.gpu.kernels.interpret",
    "hfbench.gpu.kernels.static",
    "hfbench.gpu.kernels.timing_run",
    "hfbench.gpu.kernels.tune",
    "hfbench.gpu.telemetry",
    "hfbench.jobs.history",
    "hfbench.jobs.launch",
    "hfbench.jobs.supervise",
    "hfbench.models.checkpoint",
    "hfbench.models.weights",
    "hfbench.tokens.chat",
    "hfbench.tokens.tokenizer",
]


def loaded_by(code: str) -> set[str]:
    """The top-level packages a fresh Python has loaded after this code."""
    told = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("module", LIGHT)
def test_a_light_module_stays_light(module: str) -> None:
    assert not (HEAVY | FRONT) & loaded_by(f"import {module}")


def test_all_declarations_together_stay_light() -> None:
    assert not (HEAVY | FRONT) & loaded_by("from hfbench.actions.registry import actions; actions()")


@pytest.mark.parametrize("module", ["hfbench.app", "hfbench.screens", "hfbench.scripts.command"])
def test_front_ends_never_load_what_only_workers_need(module: str) -> None:
    assert not HEAVY & loaded_by(f"import {module}")


def test_scripts_run_without_textual() -> None:
    assert not {"textual", "rich"} & loaded_by("import hfbench.scripts.command")


def test_the_contracts_hold() -> None:
    done = subprocess.run(["lint-imports", "--no-cache"], capture_output=True, text=True, env=_with_scripts(), cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:]


def _with_scripts() -> dict[str, str]:
    return {**os.environ, "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', '')}"}
