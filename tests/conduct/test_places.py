"""A sweep gives the same table wherever its cells run, and may spread over several places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from sweep_story import SweepStory

from hfbench.commands.sweep import main
from hfbench.conduct.places import places_for
from hfbench.conduct.start import cancel
from hfbench.errors import UsageError
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.snapshot import read_job
from hfbench.paths import jobs_root, sweeps_root
from hfbench.sweeps.model import SweepSnapshot
from hfbench.sweeps.table import plain_table, table

if TYPE_CHECKING:
    from ray_lab import RayLab
    from slurm_lab import SlurmLab

DEBUG = "slurm:debug,poll=0.3"
TWELVE = {"model": ["small", "large"], "to": [1, 2, 3], "pause": [0.0, 0.01]}
TWO = {"model": ["large"], "to": [1, 3], "pause": [0.01]}


@pytest.fixture
def slurm(slurm_lab: SlurmLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmLab]:
    """The cluster, found by its clients."""
    for name, value in slurm_lab.env.items():
        monkeypatch.setenv(name, value)
    yield slurm_lab
    slurm_lab.mend()


@pytest.fixture
def run(toy_actions: object) -> Iterator[Callable[..., SweepStory]]:
    """Run a sweep of twelve cells somewhere, to its end."""
    stories = []

    def to_the_end(name: str, *on: str, cells: dict[str, list[Any]] = TWELVE, **more: Any) -> SweepStory:
        stories.append(SweepStory(name))
        stories[-1].make("toy.count", cells, on=on, **more).start().end()
        return stories[-1]

    yield to_the_end
    for story in stories:
        story.clean_up()


def untimed(story: SweepStory) -> list[dict[str, Any]]:
    """The table of a sweep apart from times, jobs and places."""
    differs = ("seconds", "on", "jobs")
    return [{name: row[name] for name in row if name not in differs} for row in plain_table(table(story.now))]


def bare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without their numbers."""
    return [{**row, "cell": None} for row in rows]


def test_cells_give_the_same_table_here_on_slurm_and_on_ray(
    run: Callable[..., SweepStory], slurm: SlurmLab, ray_lab: RayLab
) -> None:
    here, there = run("here"), run("slurm", DEBUG)
    far = run("ray", ray_lab.address, cells=TWO)  # where each cell takes seconds to begin
    assert here.states == ["finished"] * 12
    assert untimed(here) == untimed(there)
    assert far.states == ["finished"] * 2
    assert all(row in bare(untimed(here)) for row in bare(untimed(far)))
    places = {read_job(JobDirectory(jobs_root() / cell.jobs[0])).place for cell in there.now.cells}
    assert len({place.partition("_")[0] for place in places}) == 1, "one array"
    assert {place.partition(" on ")[2] for place in places} == {"n1", "n2"}
    assert {cell.on for cell in far.now.cells} == {ray_lab.address}


def test_a_sweep_spreads_over_this_machine_and_a_cluster(run: Callable[..., SweepStory], slurm: SlurmLab) -> None:
    story = run("spread", "local", DEBUG, slots=2)
    assert story.states == ["finished"] * 12
    assert {cell.on for cell in story.now.cells} == {"local", DEBUG}
    assert story.of("conductor")[0]["slots"] == 4
    assert len(job_ids(jobs_root())) == 12


def test_a_sweep_whose_node_and_conductor_are_lost_midway_ends_whole_and_says_what_happened(
    toy_actions: object, slurm: SlurmLab
) -> None:
    story = SweepStory("lost")
    story.make("toy.count", {"to": [70, 71, 72]}, {"pause": 0.05}, on=(DEBUG,)).start()
    jobs: list[JobDirectory] = []

    def on_both(now: SweepSnapshot) -> bool:
        jobs[:] = [JobDirectory(jobs_root() / job) for cell in now.cells for job in cell.jobs]
        places = [snapshot.place for snapshot in map(read_job, jobs) if snapshot.state == "running"]
        return {place.partition(" on ")[2] for place in places} >= {"n1", "n2"}

    def waits_after_requeue(now: SweepSnapshot) -> bool:
        return any("after a requeue" in cell.reason for cell in now.cells)

    story.until(on_both)
    slurm.kill_node("n2")
    story.kill().resume().until(waits_after_requeue)
    slurm.hurry()  # Slurm itself would let it wait for two minutes
    story.end()
    assert story.states == ["finished"] * 3
    assert [cell.metrics["count"].value for cell in story.now.cells] == [70, 71, 72]
    assert len(job_ids(jobs_root())) == 3
    assert any("was begun again: " in cell.reason and "n2" in cell.reason for cell in story.now.cells)


def test_a_sweep_whose_raylet_is_lost_midway_ends_whole_and_says_what_happened(
    toy_actions: object, ray_lab: RayLab
) -> None:
    story = SweepStory("raylet")
    story.make("toy.count", {"to": [150, 151, 152]}, {"pause": 0.05}, on=(ray_lab.address,)).start()

    def on_both(now: SweepSnapshot) -> bool:
        return sum(cell.state == "running" and bool(cell.progress) for cell in now.cells) == 3  # a node holds two

    story.until(on_both)
    try:
        ray_lab.kill_node("second")
        story.end()
    finally:
        ray_lab.mend()
    assert story.states == ["finished"] * 3
    assert [cell.metrics["count"].value for cell in story.now.cells] == [150, 151, 152]
    assert any("was begun again: " in cell.reason for cell in story.now.cells)


def test_a_place_that_refuses_the_cells_fails_them_with_its_reason(
    run: Callable[..., SweepStory], slurm: SlurmLab
) -> None:
    story = run("refused", "slurm:nope")
    assert story.states == ["failed"] * 12
    assert "no partition 'nope'" in story.now.cells[0].reason
    assert job_ids(jobs_root()) == []


def test_the_same_place_twice_is_refused(story: SweepStory) -> None:
    plan = story.make("toy.count", {"to": [1]}) and None
    with pytest.raises(UsageError, match="the place local was given twice"):
        places_for(["local", "local"], None, plan)  # type: ignore[arg-type]


def test_a_partition_that_is_not_there_is_refused_before_there_is_a_sweep(toy_actions: object, slurm: SlurmLab) -> None:
    with pytest.raises(UsageError, match="Slurm has no partition 'nosuch'"):
        main(["run", "toy.count", "--vary", "to=1,2", "--on", "slurm:nosuch"])
    assert not sweeps_root().exists()


@pytest.mark.slow
def test_a_sweep_that_is_resumed_while_the_head_is_down_waits_for_it_and_fails_no_cell(
    story: SweepStory, ray_lab: RayLab
) -> None:
    story.make("toy.count", {"to": [1, 100, 3]}, {"pause": 0.05}, on=(ray_lab.address,), slots=1).start()
    story.until(lambda now: now.counts()["finished"] == 1 and now.counts()["running"] == 1)
    cancel(story.folder.path)
    story.end()
    try:
        ray_lab.kill_node("second")
        ray_lab.kill_node("head")
        story.resume().until(lambda now: any("cannot be reached" in cell.reason for cell in now.cells))
        assert story.now.counts()["failed"] == 0
    finally:
        ray_lab.mend()
    story.end()
    assert story.states == ["finished"] * 3
