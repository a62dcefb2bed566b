"""Machines for checks to look at."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from doctor_machines import build

from hfbench.doctor.system import System


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., System]:
    """Builds a machine in a folder of the test."""
    return partial(build, tmp_path / "root")
