"""Sample actions for scripts, and short ways to check and to run one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hfbench.actions import registry
from hfbench.actions.base import Spec
from hfbench.scripts.check import Checked, check

SAMPLES = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class Ran:
    """How a real `hfbench --script` process ended."""

    code: int
    events: list[dict[str, Any]]
    stderr: str

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind."""
        return [event for event in self.events if event["event"] == kind]

    @property
    def statuses(self) -> list[str]:
        """How each step ended."""
        return [event["status"] for event in self.of("step_finished")]


@pytest.fixture
def samples(toy_actions: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Spec]:
    """All actions, the toys and the samples for scripts among them."""
    monkeypatch.setenv(registry.ACTIONS_PATH, os.pathsep.join(map(str, (toy_actions, SAMPLES))))
    return registry.actions()


@pytest.fixture
def checked(samples: Mapping[str, Spec]) -> Callable[[str | bytes], Checked]:
    """Check the text of a script."""

    def check_text(text: str | bytes) -> Checked:
        return check(text.encode() if isinstance(text, str) else text, Path("s.hfb.yaml"), samples)

    return check_text


@pytest.fixture
def run(samples: Mapping[str, Spec], tmp_path: Path, hfbench: Callable[..., Any]) -> Callable[..., Ran]:
    """Run the text of a script in a real process."""

    def run_text(text: str, *options: str) -> Ran:
        script = tmp_path / "s.hfb.yaml"
        script.write_text(text)
        done: subprocess.CompletedProcess[str] = hfbench("--script", script, *options)
        return Ran(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr)

    return run_text
