"""Every example can be run as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfbench.actions.registry import actions
from hfbench.scripts.check import check

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hfb.yaml"))


def test_there_is_an_example_to_begin_with() -> None:
    assert "first-look.hfb.yaml" in {path.name for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_neither_errors_nor_warnings(path: Path) -> None:
    found = check(path.read_bytes(), path, actions())
    assert [error.sentence(path.name) for error in (*found.errors, *found.warnings)] == []
