"""What a place says to the job of a form, told in the form."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hfbench.jobs.directory import job_ids
from hfbench.paths import jobs_root
from hfbench.screens.job import JobScreen
from hfbench.screens.launch import LaunchScreen

pytestmark = pytest.mark.usefixtures("toy_actions")


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for sinfo that tells of one partition, `debug`, once this file is there."""
    path, folder = tmp_path / "answer", tmp_path / "bin"
    folder.mkdir()
    (folder / "sinfo").write_text(f"#!/bin/sh\nwhile ! test -e {path}; do sleep 0.02; done\necho debug\n")
    (folder / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return path


async def test_a_place_that_would_refuse_the_job_is_told_in_the_form_which_stays(
    bench: Any, until: Any, picture: Any, toasts: Any, answer: Path
) -> None:
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_form("toy.count", {"to": 1}, on="slurm:gpu")
        await until(pilot, lambda: "asking slurm:gpu whether it takes this" in "\n".join(picture(pilot)))
        form = pilot.app.screen
        form.type_again({"to": "9"})
        await until(pilot, lambda: "toy count --to 9 --on slurm:gpu" in "\n".join(picture(pilot)))
        answer.touch()
        await until(pilot, lambda: "Slurm has no partition 'gpu'; it has debug" in "\n".join(picture(pilot)))
        await pilot.press("enter")
        await until(pilot, lambda: "no partition 'gpu'" in toasts(pilot))
        assert pilot.app.screen is form
        assert form.state.texts["to"] == "9"
        form.type_again({"on": "local"})
        await until(pilot, lambda: "no partition" not in "\n".join(picture(pilot)[:-8]))
        assert job_ids(jobs_root()) == []
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        assert not any(isinstance(screen, LaunchScreen) for screen in pilot.app.screen_stack)


async def test_a_refusal_at_the_start_leaves_the_form_as_it_was(
    bench: Any, until: Any, toasts: Any, answer: Path
) -> None:
    """Pressed before the place has answered: whoever starts the job is refused, and what was typed is not lost."""
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.open_form("toy.count", {"to": 7}, on="slurm:gpu")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        form = pilot.app.screen
        await pilot.press("enter")
        answer.touch()
        await until(pilot, lambda: "no partition 'gpu'" in toasts(pilot))
        assert pilot.app.screen is form
        assert form.state.texts["to"] == "7"
        assert job_ids(jobs_root()) == []
