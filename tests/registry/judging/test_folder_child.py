"""The process that judges: it ends with its judgement, in time or not."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from hfbench.registry.judging.folder_child import judge_apart


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    (tmp_path / "model.bin").write_bytes(b"x" * 100)
    told = judge_apart(tmp_path, "team/model", 60)
    assert told is not None
    assert "config.json" in [file for _, file, _ in told]
    assert multiprocessing.active_children() == []


def test_a_judgement_that_takes_too_long_is_given_up_and_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        judge_apart(tmp_path, "team/model", 0)
    assert multiprocessing.active_children() == []
