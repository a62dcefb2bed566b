"""engine.list: where it looks, what it remembers of trial loads, and folders that cannot be looked into."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.engines.check import How, check_engine
from hfbench.engines.listing import list_engines
from hfbench.engines.manifest import MANIFEST
from hfbench.engines.trial.remembered import Trials
from hfbench.engines.trial.told import Trial
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Finished, Running, Started, to_line
from hfbench.paths import jobs_root

Hfbench = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.usefixtures("torchlike")


def test_the_roots_of_the_configuration_are_looked_into(hfbench: Hfbench, engine: Path, home: Path) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(f'[engines]\nroots = ["{engine.parent}"]\n')
    result = json.loads(hfbench("engine", "list", "--json").stdout)
    assert [each["path"] for each in result["engines"]] == [str(engine)]


def test_engines_are_listed_with_their_verdicts(hfbench: Hfbench, engine: Path) -> None:
    other = engine.parent / "damaged"
    other.mkdir()
    (other / MANIFEST).write_text("{")
    (engine.parent / ".partial").mkdir()
    (engine.parent / ".partial" / MANIFEST).write_text("{")
    time.sleep(0.2)  # a file that just changed is not remembered
    hfbench("engine", "check", engine)  # hashes its file
    done = hfbench("engine", "list", "--roots", engine.parent, "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [(os.path.basename(each["path"]), each["verdict"]) for each in result["engines"]] == [
        ("damaged", "damaged"),
        ("toy", "loads here"),
    ]
    assert result["engines"][1]["checked"]["kind"] == "aoti"
    assert "2 engines: 1 damaged" in hfbench("engine", "list", "--roots", engine.parent).stdout


def test_a_folder_that_is_absent_or_cannot_be_read_is_told(hfbench: Hfbench, engine: Path, tmp_path: Path) -> None:
    none = tmp_path / "none"
    done = hfbench("engine", "list", "--roots", none)
    assert done.returncode == 2
    assert f"x {none}: cannot be looked into (No such file or directory)" in " ".join(done.stdout.split())
    (tmp_path / "file").touch()
    done = hfbench("engine", "list", "--roots", f"{tmp_path / 'file'},{engine.parent}", "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, [each["path"] for each in result["engines"]]) == (1, [str(engine)])
    [lost] = result["unread"]
    assert (lost["folder"], lost["found"]) == (str(tmp_path / "file"), "cannot be looked into (Not a directory)")


def test_without_the_usual_folder_there_are_no_engines_and_no_trouble(hfbench: Hfbench, tmp_path: Path) -> None:
    done = hfbench("engine", "list", cwd=tmp_path)
    assert (done.returncode, done.stdout.startswith("0 engines in engines: hfbench engine build MODEL")) == (0, True)


def finished_build(tail: str, out: str, cwd: Path) -> None:
    job = JobDirectory(jobs_root() / f"2026-01-05T08-00-00-engine.build-{tail}")
    job.path.mkdir(parents=True)
    params = {"model": "m", "out": out}
    told = {"v": 1, "action": "engine.build", "params": params, "created": 1.0, "cwd": str(cwd)}
    (job.path / "request.json").write_text(json.dumps(told))
    ended = (Started(at=1, pid=1, ticks=1, host="x"), Running(at=2, device="cpu"), Finished(at=3, seconds=1))
    job.events.write_bytes(b"".join(map(to_line, ended)))
    job.lock.touch()
    (job.path / "result.json").write_text("{}")


def test_engines_that_jobs_have_built_are_listed_wherever_they_lie(
    hfbench: Hfbench, engine: Path, home: Path, tmp_path: Path
) -> None:
    finished_build("000001", "engines/toy", tmp_path)
    finished_build("000002", str(tmp_path / "gone"), tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = hfbench("engine", "list", "--json", cwd=elsewhere)
    result = json.loads(done.stdout)
    assert (done.returncode, [each["path"] for each in result["engines"]]) == (0, [str(engine)]), done.stdout
    assert json.loads(hfbench("engine", "list", "--roots", elsewhere, "--json").stdout)["engines"] == []


def test_a_trial_load_is_remembered_until_the_engine_is_built_anew(engine: Path, home: Path) -> None:
    """The engine is no package, and its load is refused: that is what is remembered."""
    check_engine(engine, How())
    [before] = list_engines([engine.parent])
    tried = check_engine(engine, How(load=True, patience=60)).trial
    [after] = list_engines([engine.parent])
    assert (before.tried, tried is not None) == (None, True)
    if tried.outcome == "could not":  # a Python without torch
        assert after.tried is None
        return
    assert after.tried is not None
    assert (after.tried.outcome, after.tried.found) == (tried.outcome, tried.found)
    assert time.time() - after.tried.at < 60
    anew = engine.with_name("anew")
    anew.mkdir()
    for each in engine.iterdir():
        each.rename(anew / each.name)
    engine.rmdir()
    anew.rename(engine)
    assert list_engines([engine.parent])[0].tried is None


def test_a_trial_that_could_not_be_made_takes_the_place_of_none(engine: Path, home: Path) -> None:
    with Trials() as trials:
        trials.keep(engine, Trial(outcome="crashed", found="it died of SIGILL"), "box")
        trials.keep(engine, Trial(outcome="could not", found="no Python"), "")
        kept = trials.latest(engine)
    assert kept is not None
    assert (kept.outcome, kept.environment) == ("crashed", "box")
