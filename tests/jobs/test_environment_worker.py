"""A worker in another Python sees this hfbench and that Python's own packages, and nothing else of ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from story import JobStory
from worker_venv import make_worker_venv

import hfbench
from hfbench.beside import ALONE

PACKAGE = Path(hfbench.__file__).parent
LIKE_A_CONTAINER = """
import os, subprocess, sys
os.chdir("/")
kept = {name: os.environ[name] for name in ("HFBENCH_HOME", "HFBENCH_ACTIONS") if name in os.environ}
sys.exit(subprocess.run(sys.argv[1:], env=kept, close_fds=True).returncode)
"""
"""Passes on neither descriptors nor variables nor the current folder, as `docker run -e HFBENCH_HOME ...` does."""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python without any package, but for the module that toy.alone needs."""
    return make_worker_venv(tmp_path_factory.mktemp("alone") / "venv", names=(), modules=["needed_by_toy"])


def test_it_imports_only_this_hfbench_and_what_its_python_has(story: JobStory, alone: Path) -> None:
    done = story.launch("toy.alone", command=[str(alone)], modules=["textual", "yaml", "needed_by_toy"]).end()
    assert done.state == "finished", done
    assert done.result is not None
    assert done.result["package"] == str(PACKAGE)
    assert done.result["modules"] == ["needed_by_toy"]
    code, version, *path = json.loads(done.result["child"])
    assert (code, version) == (2, hfbench.__version__)
    assert ALONE in path
    assert not [folder for folder in path if folder in ours()]


def test_an_own_worker_still_has_all_of_this_python(story: JobStory, monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "needed_by_toy.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = story.launch("toy.alone").end()
    assert done.result is not None
    assert done.result["modules"] == ["textual", "yaml"]


def test_behind_a_prefix_that_passes_on_nothing_the_job_runs_where_it_was_asked_for(
    story: JobStory, alone: Path, tmp_path: Path
) -> None:
    prefix = tmp_path / "container.py"
    prefix.write_text(LIKE_A_CONTAINER)
    done = story.launch("toy.alone", command=[sys.executable, str(prefix), str(alone)]).end()
    assert done.state == "finished", done
    assert done.result is not None
    assert done.result["cwd"] == os.getcwd()


def test_behind_such_a_prefix_a_job_holds_its_lock_and_can_be_cancelled(story: JobStory, tmp_path: Path) -> None:
    prefix = tmp_path / "container.py"
    prefix.write_text(LIKE_A_CONTAINER)
    story.launch("toy.count", command=[sys.executable, str(prefix), sys.executable], to=2000).until(progress=3)
    assert story.job.alive(), "the prefix holds the lock, which the worker never got"
    story.cancel()
    assert story.end().state == "cancelled"


def test_the_request_keeps_where_it_was_asked_to_run_and_the_log_says_why(story: JobStory, alone: Path) -> None:
    told: dict[str, Any] = {"environment": "good", "why": "this Python lacks needed_by_toy"}
    done = story.launch("toy.alone", command=[str(alone)], **told).end()
    assert story.job.request["environment"] == {"name": "good", "command": [str(alone)], "why": told["why"]}
    assert (done.environment, done.environment_why) == ("good", told["why"])
    assert [entry.text for entry in done.logs] == [told["why"]]


def test_an_installed_hfbench_brings_nothing_that_is_installed_beside_it(alone: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site-packages" / "hfbench"
    shutil.copytree(ALONE, installed / "alone")
    shutil.copy(PACKAGE / "__init__.py", installed)
    (installed.parent / "beside_it.py").touch()
    looking = "import importlib.util, hfbench\nprint(hfbench.__file__, importlib.util.find_spec('beside_it'))\n"
    (installed / "looking.py").write_text(looking)
    for words in ([installed / "alone", "hfbench.looking"], ["-m", "hfbench.looking"]):
        environment = {"PYTHONPATH": str(installed / "alone")}
        done = subprocess.run([alone, "-P", *words], env=environment, capture_output=True, text=True, timeout=60)
        assert done.stdout == f"{installed / '__init__.py'} None\n", done.stderr


def ours() -> list[str]:
    """Folders of packages of the Python that runs the tests."""
    return [folder for folder in sys.path if folder.endswith("site-packages") or folder == str(PACKAGE.parent)]
