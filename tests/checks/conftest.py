"""A whole small model, and what one rule finds in it after an edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_model import Edit, make

from hfbench.checks.base import rules
from hfbench.checks.finding import Finding
from hfbench.checks.run import report_on
from hfbench.checks.subject import Options, subject_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The whole small model."""
    return make(tmp_path / "model")


@pytest.fixture
def findings_of(tmp_path: Path) -> Callable[..., list[Finding]]:
    """What one rule finds in the small model after an edit."""

    def find(id: str, edit: Edit, **options: Any) -> list[Finding]:
        folder = make(tmp_path / "edited")
        edit(folder)
        return list(report_on(subject_of(folder, options=Options(**options)), [rules()[id]]).findings)

    return find
