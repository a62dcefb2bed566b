"""Jobs on a real Ray cluster: where they run, what comes back, and what is told when something of it dies."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemons import free_ports, parent, processes_with
from story import JobStory, gone, until
from worker_venv import make_worker_venv

import hfbench
from hfbench.errors import MissingError, UsageError
from hfbench.jobs.directory import job_ids
from hfbench.jobs.events import Event, Requeued, Started
from hfbench.jobs.launch import JobRequest, adopt, launch_many

if TYPE_CHECKING:
    from ray_lab import RayLab

LONG = 100_000
"""Numbers a job counts to that is not meant to get there."""


@pytest.fixture
def mended(ray_lab: RayLab) -> Iterator[RayLab]:
    """The cluster, whole again behind the test."""
    yield ray_lab
    ray_lab.mend()


@pytest.fixture
def hidden(ray_lab: RayLab) -> Path:
    """A jobs folder that the nodes do not see."""
    if not ray_lab.hides:
        pytest.skip("no disk can be hidden from the nodes here")
    return ray_lab.hidden


def events(story: JobStory, kind: type[Event]) -> list[Event]:
    return [event for event in story.events if isinstance(event, kind)]


def begun(story: JobStory, times: int) -> bool:
    return len(events(story, Started)) == times


def is_gone(path: Path) -> bool:
    return not path.exists()


def launched(root: Path, requests: list[JobRequest]) -> list[JobStory]:
    """The stories of jobs that one keeper has."""
    return [JobStory.of(root, job.id) for job in launch_many(root, requests)]


LAUNCH = (
    "import sys; from pathlib import Path; from hfbench.jobs.launch import *;"
    "launch(Path(sys.argv[1]), JobRequest(action='toy.make', params={'size': int(sys.argv[3])}, on=sys.argv[2]))"
)


def test_files_come_back_over_a_shared_disk_and_without_one_from_a_node_that_has_no_hfbench(
    ray_lab: RayLab, story: JobStory, hidden: Path
) -> None:
    size, root, copy = 9 << 20, hidden / "jobs", hidden / "copy" / "hfbench"
    shutil.copytree(Path(hfbench.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    words = [sys.executable, "-P", "-c", LAUNCH, root, ray_lab.address, str(size)]
    env = {**os.environ, "PYTHONPATH": str(copy.parent)}
    with subprocess.Popen(words, env=env, cwd="/") as of_the_copy:
        story.launch("toy.make", on=ray_lab.address, size=size)
    assert of_the_copy.returncode == 0
    far = JobStory.of(root, job_ids(root)[0])
    for each in (story, far):
        done = each.expect_outcome("finished").end()
        assert done.result is not None
        assert (each.job.path / "artifacts/deep/zeros.bin").read_bytes() == bytes(size)
        assert [artifact.path for artifact in done.artifacts] == ["artifacts/deep/zeros.bin"]
        assert not (each.job.path / "artifacts/link").exists()
        assert not list(each.job.path.rglob(".*.far"))
        assert each.job.read("environment.json")
        until(partial(is_gone, Path(done.result["folder"])), "the node's folder stays")
        assert ("/hfbench-ray-" in done.result["package"]) is (each is far)


def test_a_job_has_the_environment_it_asks_for_and_the_gpu_that_the_cluster_gives_it(
    ray_lab: RayLab, root: Path, toy_actions: Path, tmp_path: Path
) -> None:
    python = make_worker_venv(tmp_path / "venv", names=(), modules=["needed_by_toy"])
    modules = {"modules": ["yaml", "needed_by_toy"]}
    requests = [
        JobRequest(action="toy.alone", params=modules, command=[str(python)], on=ray_lab.address),
        JobRequest(action="toy.make", params={}, gpus=1, on=ray_lab.address),
    ]
    alone, with_gpu = (story.end().result or {} for story in launched(root, requests))
    assert (alone["python"], alone["modules"]) == (str(python), ["needed_by_toy"])
    assert with_gpu["cuda"] == "0"


def test_more_than_any_node_has_is_refused_at_once(ray_lab: RayLab, story: JobStory) -> None:
    needs = r"needs 1 CPU, 2 GPUs on one node, and the cluster has 2 nodes with 2 CPUs, 0 GPUs; 2 CPUs, 1 GPU\."
    with pytest.raises(UsageError, match=needs):
        story.launch("toy.make", on=ray_lab.address, gpus=2)
    with pytest.raises(UsageError, match=r"needs 1 CPU, 0 GPUs and 9.00 TiB of memory .* GiB of memory"):
        story.launch("toy.make", on=f"{ray_lab.address},memory=9T")
    assert not job_ids(story.root)


def test_a_job_waits_in_words_until_a_node_is_free_and_both_can_be_cancelled(
    ray_lab: RayLab, root: Path, toy_actions: Path
) -> None:
    counts = (LONG, LONG, 3)
    requests = [JobRequest(action="toy.count", params={"to": to}, gpus=1, on=ray_lab.address) for to in counts]
    first, second, third = launched(root, requests)
    first.until(progress=3)
    until(lambda: second.now.waits_for == "no node has 1 CPU, 1 GPU free", "it never told what it waits for")
    second.cancel().expect_outcome("cancelled")
    assert third.now.state == "queued"
    first.cancel().expect_outcome("cancelled").expect_reason("stopped on request").expect_last_event("cancelled")
    third.expect_outcome("finished")


def test_a_job_whose_worker_is_killed_is_begun_again_once_and_names_it(
    ray_lab: RayLab, toy_actions: Path, hidden: Path
) -> None:
    pid_of: dict[str, Callable[[JobStory], int]] = {
        "worker": lambda story: story.now.pid,
        "child": lambda story: story.child,
        "actor": lambda story: parent(story.now.pid),
    }
    requests = [
        JobRequest(action="toy.count", params={"to": to, "pause": 0.05}, on=ray_lab.address)
        for to in (LONG, LONG, LONG, 100)
    ]
    *doomed, once = launched(hidden / "killed", requests)
    for attempt in (1, 2):
        for story, kind in zip((*doomed, once)[: 5 - attempt], (*pid_of, "actor"), strict=False):
            until(partial(begun, story, attempt), "it is not begun again")
            os.kill(pid_of[kind](story.until(progress=3)), signal.SIGKILL)
    for story in doomed:
        last = story.expect_outcome("died").end().sentence()
        (again,) = events(story, Requeued)
        assert isinstance(again, Requeued)
        assert re.fullmatch(
            r"Ray worker \d+ on \S+/\w+ died: .*(killed by SIGKILL|was killed or crashed).*", again.reason
        )
        assert "killed" in last
    done = once.expect_outcome("finished").end()
    assert done.series["number"].values == tuple(map(float, range(1, 101)))  # of the attempt that counts
    assert once.job.log.read_text().endswith("counted 99\ncounted 100\n")


def test_jobs_of_a_lost_node_are_begun_again_on_another(mended: RayLab, root: Path, toy_actions: Path) -> None:
    requests = [JobRequest(action="toy.count", params={"to": 150}, on=mended.address) for _ in range(2)]
    stories = launched(root, requests)
    for story in stories:
        story.until(progress=5)
    lost = [mended.node_of(story.now.pid) for story in stories]
    mended.kill_node("second")
    for story in stories:
        story.expect_outcome("finished")
    again = [event for story in stories for event in events(story, Requeued)]
    assert len(again) == lost.count("second") == 1
    assert isinstance(again[0], Requeued)
    assert again[0].reason.endswith("its node was lost")


def test_a_head_that_is_gone_is_told_and_one_that_is_back_gets_the_job_again(mended: RayLab, story: JobStory) -> None:
    story.launch("toy.count", to=100, on=f"{mended.address},poll=1").until(progress=5)
    mended.kill_node("head")
    until(lambda: "cannot be reached: connection refused" in story.now.trouble, "nothing tells that the head is gone")
    mended.mend()
    story.expect_outcome("finished")
    (again,) = events(story, Requeued)
    assert isinstance(again, Requeued)
    assert "its head was restarted" in again.reason


def test_a_killed_keeper_is_followed_by_one_that_does_nothing_twice(
    ray_lab: RayLab, story: JobStory, hidden: Path
) -> None:
    story.root = hidden / "kept"
    story.launch("toy.count", to=100, on=ray_lab.address).until(progress=5)
    kill_keeper(story)
    assert story.now.orphan
    assert adopt([story.job]) == 1
    done = story.expect_outcome("finished").end()
    assert done.series["number"].values == tuple(map(float, range(1, 101)))
    assert len(events(story, Started)) == 1


def test_the_cluster_of_this_machine_needs_no_address(
    ray_lab: RayLab, story: JobStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", ray_lab.gcs)
    story.launch("toy.count", to=5, on="ray:auto").expect_outcome("finished")


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_an_address_where_nobody_listens_is_refused_before_there_is_a_job(
    host: str, toy_actions: Path, hfbench: Any, root: Path
) -> None:
    (port,) = free_ports(1)
    done = hfbench("toy", "count", "--on", f"ray://{host}:{port}")
    assert done.returncode == 4
    assert "Ray's head cannot be reached" in done.stderr
    assert "Check the address, or start the head there" in done.stderr
    assert job_ids(root) == []


def test_where_somebody_listened_the_job_waits_with_the_reason_until_it_is_cancelled(
    story: JobStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    monkeypatch.setattr("hfbench.jobs.executors.ray._answers", {f"ray://127.0.0.1:{port}": (1e-9, ())})
    monkeypatch.setattr("hfbench.jobs.executors.ray.BELIEVED", 0.0)
    story.launch("toy.count", on=f"ray://127.0.0.1:{port}")
    until(lambda: story.now.trouble != "", "no trouble is told")
    assert story.now.trouble == f"ray://127.0.0.1:{port}: Ray's head cannot be reached: connection refused"
    story.cancel().expect_outcome("cancelled")


def test_without_ray_the_job_is_refused_with_what_to_install(
    ray_lab: RayLab, story: JobStory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("hfbench.jobs.executors.ray._answers", {})
    (tmp_path / "ray.py").write_text("raise ImportError('none', name='ray')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(MissingError, match=r'this Python lacks ray. Install "ray\[client\]" in the version'):
        story.launch("toy.count", on=f"{ray_lab.address},cpus=1")


@pytest.mark.parametrize("address", ["ray://somewhere", "ray://127.0.0.1:99999"])
def test_an_address_without_a_port_is_refused(address: str, story: JobStory) -> None:
    with pytest.raises(UsageError, match=r"is no address of a Ray cluster. Write ray://HOST:PORT"):
        story.launch("toy.count", on=address)


def kill_keeper(story: JobStory) -> None:
    """Kill -9 the process that stands in for the worker."""
    (pid,) = processes_with("hfbench.jobs.executors.keeper", story.job.path)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not story.job.alive(), "the keeper lives on")


def test_a_job_whose_folder_is_removed_is_ended_on_its_node(ray_lab: RayLab, story: JobStory) -> None:
    story.launch("toy.count", to=LONG, on=f"{ray_lab.address},poll=0.3").until(progress=1)
    worker, keeper = story.child, processes_with(str(story.job.path))
    assert keeper
    shutil.rmtree(story.job.path)
    until(lambda: all(map(gone, (worker, *keeper))), "it goes on, or its keeper does")
    assert not story.job.path.exists()
