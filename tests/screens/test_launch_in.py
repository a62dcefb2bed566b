"""The row of the Launch form that says where a job runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from worker_venv import make_worker_venv

from hfbench.config import Config, EnvironmentConfig
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.follow import wait_until
from hfbench.paths import config_file, jobs_root
from hfbench.screens.job import JobScreen
from hfbench.screens.launch import LaunchScreen
from hfbench.widgets.form import FieldInput

pytestmark = pytest.mark.usefixtures("toy_actions")


@pytest.fixture
def config(home: Path, tmp_path: Path) -> Config:
    """One environment: a Python without any package."""
    python = make_worker_venv(tmp_path / "venv", names=())
    config_file().parent.mkdir(parents=True)
    config_file().write_text(f'[environments.mine]\npython = "{python}"\n')
    return Config(environments={"mine": EnvironmentConfig(python=str(python))})


async def test_without_environments_there_is_nothing_to_choose(bench: Any, until: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_form("toy.count", {"to": 1})
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        assert not pilot.app.screen.query("#field-in")


async def test_a_job_runs_in_the_environment_that_was_chosen(
    bench: Any, until: Any, picture: Any, config: Config
) -> None:
    async with bench(config=config).run_test(size=(80, 24)) as pilot:
        pilot.app.recorder.start()
        pilot.app.open_form("toy.count", {"to": 1})
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        field = pilot.app.screen.query_one("#field-in", FieldInput)
        field.focus()
        await pilot.press("space", "space")
        assert field.value == "mine"
        await until(pilot, lambda: any("toy count --to 1 --in mine" in line for line in picture(pilot)))
        field.value = "yours"
        await until(pilot, lambda: "in" in pilot.app.screen.state.problems)
        field.value = "mine"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        await until(pilot, lambda: any("in mine" in line for line in picture(pilot)))
        job = JobDirectory(jobs_root() / job_ids(jobs_root())[0])
        assert wait_until(job, lambda snapshot: snapshot.state.over, timeout=60).environment == "mine"
        assert "- toy.count: {to: 1, in: mine, save_as: count}" in pilot.app.recorder.texts()[0]
        await pilot.press("R")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
        assert pilot.app.screen.query_one("#field-in", FieldInput).value == "mine"
