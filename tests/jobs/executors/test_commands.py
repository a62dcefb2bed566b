"""`--on` of actions, scripts and `hfbench jobs`, as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from story import JobStory

from hfbench.jobs.directory import JobDirectory

if TYPE_CHECKING:
    from slurm_lab import SlurmLab


def test_a_word_that_is_no_place_is_refused_with_the_nearest(toy_actions: Path, hfbench: Any, root: Path) -> None:
    done = hfbench("toy", "count", "--on", "slrum:gpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'slurm'?" in done.stderr.lower()
    assert not root.exists()


def test_an_action_that_only_reads_is_not_sent_anywhere(hfbench: Any) -> None:
    done = hfbench("inspect", "model", "--on", "slurm:gpu")
    assert done.returncode == 2
    assert "Give --detach too" in done.stderr


def test_a_machine_without_a_cluster_says_so(toy_actions: Path, hfbench: Any, tmp_path: Path) -> None:
    done = hfbench("toy", "count", "--on", "slurm:gpu", env={"SLURM_CONF": str(tmp_path / "none"), "PATH": "/nowhere"})
    assert done.returncode == 4
    assert "there is no sinfo on this machine" in done.stderr


def test_a_script_says_where_its_steps_run_and_the_option_says_it_for_the_rest(
    toy_actions: Path, hfbench: Any, tmp_path: Path
) -> None:
    script = tmp_path / "s.hfb.yaml"
    script.write_text(
        "hfbench: 1\nvars: {where: ssh:box}\nsteps:\n"
        '  - toy.count: {to: 1, on: "{{ where }}"}\n  - toy.count: {to: 1}\n  - toy.count: {to: 1, on: local}\n'
    )
    done = hfbench("--script", script, "--dry-run", "--on", "slurm:gpu")
    assert done.returncode == 0, done.stderr
    planned = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each.get("on") for each in planned if each["event"] == "planned"] == ["ssh:box", "slurm:gpu", "local"]


def test_looking_at_jobs_gives_one_a_new_keeper(
    slurm: SlurmLab, story: JobStory, hfbench: Any, kill_keeper: Callable[[JobDirectory], None]
) -> None:
    story.launch("toy.count", to=100, on="slurm:debug,poll=0.3").until(progress=1)
    kill_keeper(story.job)
    done = hfbench("jobs", "list", "--json")
    assert json.loads(done.stdout)[0]["state"] == "running"
    assert not story.now.orphan
    assert hfbench("jobs", "wait", story.job.short_id).returncode == 0
    told = hfbench("jobs", "show", story.job.short_id).stdout
    assert "slurm:debug" in told
    assert " on n" in told


def test_a_job_is_followed_on_slurm_and_its_result_printed(slurm: SlurmLab, hfbench: Any) -> None:
    done = hfbench("toy", "count", "--to", "4", "--json", "--on", "slurm:debug,poll=0.3")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["count"] == 4
