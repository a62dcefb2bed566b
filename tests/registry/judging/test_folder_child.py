"""The process that judges: it ends with its judgement, in time or not."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from hfbench.registry.judging.folder_child import NotJudged, death, judge_apart, read_answer


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    (tmp_path / "model.bin").write_bytes(b"x" * 100)
    told = judge_apart(tmp_path, "team/model", 60)
    assert "config.json" in [file for _, file, _ in told]
    assert multiprocessing.active_children() == []


def test_a_judgement_that_takes_too_long_is_given_up_and_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        judge_apart(tmp_path, "team/model", 0)
    assert multiprocessing.active_children() == []


def test_a_judge_that_fails_is_told_as_a_fault_of_the_hub_and_not_of_the_model(tmp_path: Path) -> None:
    with pytest.raises(NotJudged, match="failed with status 1, which is a fault of this hub"):
        judge_apart(tmp_path / "gone", "team/model", 60)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("status", [-9, -24, 12])
def test_a_judge_that_met_a_limit_is_told_so(status: int) -> None:
    assert "more memory or time than it may" in death(status)


@pytest.mark.parametrize("answer", [b"", b"\xff", b"{}", b'[["HB101", "config.json"]]', b'[["HB101", 1, "x"]]', b"[[]"])
def test_an_answer_that_is_no_list_of_problems_has_its_own_sentence(answer: bytes) -> None:
    with pytest.raises(NotJudged, match="gave an answer that cannot be read"):
        read_answer(answer)
