"""Warm workers do what cold ones do, and keep what happens to one job from all others."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built_engines import tiny_model

from hfbench.actions.registry import find
from hfbench.conduct.warm import WarmWorkers, _Warm
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.follow import wait_until
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.snapshot import JobSnapshot
from hfbench.jobs.tail import read_events
from hfbench.paths import jobs_root


class Warm:
    """Launches jobs warm and waits for their ends."""

    def __init__(self) -> None:
        self.workers = WarmWorkers()

    def run(self, action: str, **params: Any) -> tuple[JobDirectory, JobSnapshot]:
        """A job from its launch to its end."""
        job = self.launch(action, **params)
        return job, wait_until(job, lambda s: s.state.over, timeout=120)

    def launch(self, action: str, **params: Any) -> JobDirectory:
        """A job that was begun."""
        start = self.workers.start_for(find(action))
        assert start is not None
        return launch(jobs_root(), JobRequest(action=action, params=params), start)

    @property
    def processes(self) -> list[int]:
        """The ids of the warm processes."""
        return [warm._process.pid for warm in self.workers._kept.values()]


@pytest.fixture
def warm(toy_actions: Path) -> Iterator[Warm]:
    """Warm workers of the test's own."""
    made = Warm()
    yield made
    made.workers.close()


def test_a_crash_in_native_code_leaves_the_warm_process_and_the_next_job_unharmed(warm: Warm) -> None:
    _, before = warm.run("toy.count", to=2, pause=0)
    (process,) = warm.processes
    _, crashed = warm.run("toy.fail", how="segv")
    _, after = warm.run("toy.count", to=3, pause=0)
    assert (before.state, crashed.state, after.state) == ("finished", "died", "finished")
    assert crashed.reason == "killed by SIGSEGV: native code crashed"
    assert after.result is not None
    assert after.result["count"] == 3
    assert warm.processes == [process]


def test_a_warm_process_that_is_killed_is_started_again_and_its_running_job_goes_on(warm: Warm) -> None:
    running = warm.launch("toy.count", to=40, pause=0.02)
    wait_until(running, lambda s: s.state == "running", timeout=60)
    (process,) = warm.processes
    os.kill(process, signal.SIGKILL)
    _, after = warm.run("toy.count", to=1, pause=0)
    assert after.state == "finished"
    assert warm.processes != [process]
    ended = wait_until(running, lambda s: s.state.over, timeout=60)
    assert (ended.state, ended.result and ended.result["count"]) == ("finished", 40)


def test_a_warm_worker_leads_a_session_of_its_own_and_writes_to_its_own_log(warm: Warm) -> None:
    job, ended = warm.run("toy.count", to=2, pause=0)
    assert job.log.read_text() == "counted 1\ncounted 2\n"
    (process,) = warm.processes
    assert ended.pid != process
    assert [event.kind for event in read_events(job) if event.kind in ("started", "running", "finished")] == [
        "started",
        "running",
        "finished",
    ]


def test_libraries_that_cannot_be_imported_make_cold_workers_and_no_failure(
    warm: Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hfbench.conduct.warm.HEAVY", ("no_such_library",))
    spec = find("toy.count")
    monkeypatch.setattr("hfbench.conduct.warm.BEYOND", {})
    monkeypatch.setitem(vars(spec), "needs", ("no_such_library",))
    start = warm.workers.start_for(spec)
    job = launch(jobs_root(), JobRequest(action="toy.count", params={"to": 1}), start)
    assert wait_until(job, lambda s: s.state.over, timeout=60).state == "finished"
    assert warm.workers.start_for(spec) is None, "it is not tried again"


def test_results_of_warm_workers_equal_cold_ones(warm: Warm, tmp_path: Path) -> None:
    """Tokens, counts and names; times and what else is measured differ from run to run."""
    asked = {"model": str(tiny_model(tmp_path / "tiny")), "device": "cpu", "threads": 1, "prompt": 8, "new_tokens": 6}
    asked |= {"batch": 2, "max_iterations": 2, "warmup": 0, "budget": 1}
    cold = launch(jobs_root(), JobRequest(action="bench.generate", params=asked))
    forked = _unmeasured(warm.run("bench.generate", **asked)[1].result)
    alone = _unmeasured(wait_until(cold, lambda s: s.state.over, timeout=120).result)
    assert forked == alone
    assert len(alone["output_ids"]) == 2
    assert len(alone) > 10


def _unmeasured(result: dict[str, Any] | None) -> dict[str, Any]:
    """A result without what was measured."""
    assert result is not None
    return {
        name: value
        for name, value in result.items()
        if name not in ("headline", "verdicts")
        and isinstance(value, (str, int, list))
        and not name.endswith(("seconds", "bytes"))
    }


def test_a_warm_process_that_nobody_waits_for_any_more_says_so_in_a_sentence(
    toy_actions: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    warm = _Warm(("torch",))
    process = warm._process
    warm._channel.close()  # the conductor left, or was killed, while it still imports
    assert process.wait(60) == 0
    told = capfd.readouterr().err
    assert "nobody waits any more for the warm process" in told
    assert "Traceback" not in told


def test_libraries_that_cannot_be_imported_are_told_in_a_sentence(
    toy_actions: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    warm = _Warm(("no_such_library",))
    assert warm._process.wait(60) == 1
    warm.close()
    told = capfd.readouterr().err
    assert told == "hfbench: no warm process: No module named 'no_such_library'; workers start cold\n"
