"""The estimated time of a sweep follows from what differs between its cells and earlier jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from job_folders import make_job

from hfbench.actions.registry import find
from hfbench.conduct.estimate import estimate
from hfbench.conduct.vary import sweep_script
from hfbench.jobs.events import Finished, Running, Started
from hfbench.paths import jobs_root
from hfbench.scripts.command import plan_of
from hfbench.scripts.plan import Plan

USUAL = {"model": "/m", "device": "cpu", "batch": 1, "prompt": 128, "new_tokens": 64, "budget": 60.0}


def earlier(tail: str, seconds: float, result: Mapping[str, Any], **params: Any) -> None:
    """A job of bench.generate that took so long."""
    began = time.time() - 1000
    events = [
        Started(at=began, pid=1, ticks=1, host="h"),
        Running(at=began, device="cpu"),
        Finished(at=began + seconds, seconds=seconds),
    ]
    make_job(jobs_root(), tail, "bench.generate", {**USUAL, **params}, events, result=dict(result))


def plan(varied: Mapping[str, list[Any]], **fixed: Any) -> Plan:
    """A sweep of bench.generate."""
    source = sweep_script(find("bench.generate"), "s", {"model": "/m", "device": "cpu", **fixed}, varied)
    return plan_of(source.encode(), Path("s.hfb.yaml"))


SPENT = {"measured_seconds": 55.0, "iterations": 58, "warmup": {"seconds": [2.5, 2.5]}, "stop_reason": "budget-spent"}


def test_a_cell_takes_no_longer_than_its_budget_and_the_start_of_earlier_jobs() -> None:
    earlier("aaaaaa", 70.0, SPENT)
    found = estimate(plan({"batch": [1, 2]}, budget=2.0), jobs_root())
    assert found is not None
    assert found.cell_s == 12.0, "10 s to start, then its budget"
    assert found.source == "1 earlier job of bench.generate with this model, scaled to these fields"


def test_an_iteration_that_is_longer_than_the_budget_is_reckoned_with() -> None:
    warm_up = {"seconds": [50.0]}
    earlier(
        "aaaaaa", 110.0, {"measured_seconds": 50.0, "iterations": 1, "warmup": warm_up, "stop_reason": "budget-spent"}
    )
    found = estimate(plan({"batch": [1, 2]}, budget=2.0), jobs_root())
    assert found is not None
    assert found.cell_s == 10.0 + (50.0 + 100.0) / 2


def test_a_measurement_that_ended_before_its_budget_grows_with_the_tokens_up_to_the_budget() -> None:
    earlier("aaaaaa", 16.0, {"measured_seconds": 6.0, "stop_reason": "interval-reached"})
    for batch, expected in ((1, 16.0), (4, 34.0), (64, 70.0)):
        found = estimate(plan({"batch": [batch]}), jobs_root())
        assert found is not None
        assert found.cell_s == expected


def test_a_job_of_the_same_model_counts_however_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "m")
    earlier("aaaaaa", 16.0, {}, model=str(tmp_path / "m"))
    earlier("bbbbbb", 18.0, {}, model=str(tmp_path / "link"))
    found = estimate(plan({"batch": [1]}, model=str(tmp_path / "link")), jobs_root())
    assert found is not None
    assert (found.cell_s, found.source) == (17.0, "2 earlier jobs of bench.generate with this model")


def test_jobs_that_differ_least_are_the_evidence() -> None:
    earlier("aaaaaa", 16.0, {}, batch=8, dtype="fp32")
    earlier("bbbbbb", 30.0, {}, batch=8, dtype="bf16")
    found = estimate(plan({"dtype": ["fp32"]}, batch=8), jobs_root())
    assert found is not None
    assert (found.cell_s, found.source) == (16.0, "1 earlier job of bench.generate with this model")


def test_without_an_earlier_job_the_budgets_are_told_and_without_those_nothing(toy_actions: Path) -> None:
    found = estimate(plan({"budget": [2.0, 4.0]}), jobs_root())
    assert found is not None
    assert (found.cell_s, found.source) == (3.0, "the budgets, loading not counted")
    counting = sweep_script(find("toy.count"), "s", {}, {"to": [1, 2]})
    assert estimate(plan_of(counting.encode(), Path("s.hfb.yaml")), jobs_root()) is None
