"""What every test shares: a home of its own, toy actions, and a Python to start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_textual_snapshot

TOYS = Path(__file__).parent / "toys"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HFBENCH_HOME and the Hugging Face cache of the test: nothing of the developer's is read or written."""
    folder = tmp_path / "home"
    monkeypatch.setenv("HFBENCH_HOME", str(folder))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("HF_HUB_CACHE", "HF_TOKEN", "NO_COLOR", "HFBENCH_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def toy_actions(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with toy actions, known to this process and to every process it starts."""
    from hfbench.actions.registry import ACTIONS_PATH

    monkeypatch.setenv(ACTIONS_PATH, str(TOYS))
    return TOYS


@pytest.fixture
def hfbench(home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the real command in a real process, output captured as text."""

    def run(*words: str | Path, env: dict[str, str] | None = None, **more: object) -> subprocess.CompletedProcess[str]:
        told = {"capture_output": True, "text": True, "timeout": 120, "stdin": subprocess.DEVNULL, **more}
        return subprocess.run(command(words), env={**os.environ, **(env or {})}, **told)  # type: ignore[call-overload]

    return run


def command(words: Sequence[str | Path]) -> list[str]:
    """The command line of `hfbench` with the Python of the tests."""
    return [sys.executable, "-m", "hfbench", *map(str, words)]


def pictures_folder(cls: type, *, test_location: Any) -> str:
    """Golden screens live in snapshots/, one folder a test module."""
    return str(Path(__file__).parents[1] / "snapshots" / Path(str(test_location.filepath)).stem)


pytest_textual_snapshot.SVGImageExtension.dirname = classmethod(pictures_folder)  # type: ignore[assignment]
