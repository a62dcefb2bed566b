"""`hfbench sweep` as a person uses it, in real processes."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hfbench.commands.sweep import describe, main
from hfbench.commands.sweep_follow import _Waits
from hfbench.conduct.start import wait_until_left
from hfbench.errors import HfbenchError, UsageError
from hfbench.exits import Exit
from hfbench.paths import sweeps_root
from hfbench.sweeps.model import CellView
from hfbench.sweeps.snapshot import read_sweep

Hfbench = Callable[..., subprocess.CompletedProcess[str]]
COUNT = ("sweep", "run", "toy", "count")


def test_an_action_whose_fields_vary_is_run_saved_as_a_script_and_told_as_a_table(
    hfbench: Hfbench, toy_actions: Path
) -> None:
    done = hfbench(*COUNT, "--vary", "to=1..4*2", "--vary", "pause=0,0.01", "--name", "counts")
    assert (done.returncode, done.stdout.splitlines()[0].split()) == (
        0,
        ["CELL", "to", "pause", "STATE", "count", "doubled"],
    )
    assert "[6/6] to=4 pause=0.01 finished" in done.stderr
    assert "how long they take is unknown: no earlier job tells it" in done.stderr
    script = sweeps_root() / "counts" / "sweep.hfb.yaml"
    checked = hfbench("--script", script, "--dry-run")
    assert [json.loads(line)["params"]["to"] for line in checked.stdout.splitlines()] == [1, 1, 2, 2, 4, 4]
    told = json.loads(hfbench("sweep", "table", "counts", "--json", "--metric", "count").stdout)
    assert [cell["metrics"]["count"]["value"] for cell in told["cells"]] == [1, 1, 2, 2, 4, 4]
    again = hfbench(*COUNT, "--vary", "to=1,2", "--dry-run")
    assert "2 cells, 1 at once on local; about" in again.stdout
    assert "from 4 earlier jobs of toy.count with this model" in again.stdout


def test_a_script_with_one_name_twice_is_refused_with_what_to_give(
    hfbench: Hfbench, toy_actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "s.hfb.yaml"
    script.write_text("hfbench: 1\nname: my counts\nsteps:\n  - toy.count: {to: 2, pause: 0}\n    expect: count == 3\n")
    done = hfbench("sweep", "run", script, "--json")
    assert (done.returncode, json.loads(done.stdout)["exit"]) == (1, 1)
    with pytest.raises(UsageError, match=r"there is a sweep 'my-counts' already.*--name"):
        main(["run", str(script)])
    assert main(["table", "my", "--csv"]) == Exit.OK
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["state"], row["count"], row["reason"]) == ("failed", "2", "not as expected: count == 3; it is 2")
    assert main(["rm", "my-counts"]) == Exit.OK
    assert not (sweeps_root() / "my-counts").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "toy.count", "--vary", "to="], "which makes 0 cells"),
        (["run", "toy.count", "--vary", "to=3..1"], "which makes 0 cells"),
        (
            ["run", "toy.count", "--vary", "to=1..200", "--vary", "pause=0..1+0.01"],
            "20,200 cells; a sweep may have 10,000",
        ),
        (["run", "toy.count", "--vary", "to=1..1000000"], "10,000"),
        (["run", "toy.count", "--vary", "too=1,2"], "Did you mean 'to'"),
        (["run", "toy.count", "--vary", "to=1,x"], "'x' is not an integer"),
        (["run", "toy.count", "--vary", "to=1", "--to", "2"], "unrecognized arguments: --to"),
        (["run", "toy.count", "--to", "2"], "no field varies"),
        (["run", "toy.count", "--vary", "to=1", "--name", "../x"], "cannot be the name of a sweep"),
        (["run", "toy.count", "--vary", "to=1", "--name", "last"], "'last' stands for the latest sweep"),
        (["run", "toy.count", "--vary", "to=1", "--slots", "0"], "not a number of cells"),
        (["run", "toy.count", "--vary", "to=1", "--on", "moon"], "no executor is called 'moon'"),
        (["run", "toy.cuont", "--vary", "to=1"], "neither a script nor an action"),
        (["run", "--vary", "to=1"], "required: SCRIPT"),
        (["show", "nothing"], "there is no sweep 'nothing'"),
        (["table", "x", "--json", "--csv"], "--json and --csv were given"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence_and_leaves_no_folder(
    words: list[str], told: str, toy_actions: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        main(words)
    assert told in str(refused.value)
    assert not sweeps_root().exists()


def test_a_script_of_too_many_cells_is_refused_with_their_count(toy_actions: Path, tmp_path: Path, capsys) -> None:
    script = tmp_path / "s.hfb.yaml"
    axis = list(range(1, 102))
    script.write_text(f"hfbench: 1\nmatrix: {{a: {axis}, b: {axis}}}\nsteps:\n  - toy.count: {{to: '{{{{ a }}}}'}}\n")
    assert main(["run", str(script)]) == Exit.USAGE
    assert "the matrix has 10201 cells; a script may have 10000" in capsys.readouterr().err
    assert not sweeps_root().exists()


def test_ctrl_c_stops_the_sweep_and_says_how_it_goes_on(toy_actions: Path, home: Path) -> None:
    from conftest import command

    process = subprocess.Popen(
        command([*COUNT, "--vary", "to=1,5000", "--name", "long"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    folder = sweeps_root() / "long"
    while (
        not folder.exists()
        or read_sweep(folder).counts()["running"] == 0
        or read_sweep(folder).counts()["finished"] == 0
    ):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED
    assert "hfbench sweep resume long goes on" in told
    assert "Traceback" not in told
    found = read_sweep(folder)
    assert (found.state, found.counts()["finished"], found.counts()["running"]) == ("stopped", 1, 0)


def test_a_closed_terminal_leaves_the_sweep_running(toy_actions: Path, home: Path) -> None:
    from conftest import command

    process = subprocess.Popen(
        command([*COUNT, "--vary", "to=1,30", "--name", "left"]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    folder = sweeps_root() / "left"
    while not folder.exists() or read_sweep(folder).state != "running":
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while read_sweep(folder).state == "running":
        time.sleep(0.05)
    assert (read_sweep(folder).state, read_sweep(folder).counts()["finished"]) == ("finished", 2)


def test_a_refusal_that_is_expected_is_no_failure_of_its_cell(
    hfbench: Hfbench, toy_actions: Path, tmp_path: Path
) -> None:
    script = tmp_path / "s.hfb.yaml"
    steps = "  - toy.fail: {}\n    fails: '{{ say }}'\n"
    script.write_text(f"hfbench: 1\nname: refusals\nmatrix: {{say: [broken, bought]}}\nsteps:\n{steps}")
    done = hfbench("sweep", "run", script)
    assert done.returncode == 3
    first, second = read_sweep(sweeps_root() / "refusals").cells
    assert (first.state, first.expectations) == ("finished", (1, 0))
    assert (second.state, second.expectations) == ("failed", (0, 1))
    assert "the toy is broken" in second.reason


def test_a_sweep_that_is_over_keeps_no_other_from_being_cancelled_and_told(
    hfbench: Hfbench, toy_actions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hfbench(*COUNT, "--vary", "to=1", "--name", "twin")
    hfbench(*COUNT, "--vary", "to=5000", "--name", "m1", "--detach")
    assert main(["cancel", "m1", "twin"]) == Exit.USAGE
    told = capsys.readouterr()
    assert told.out.startswith("m1  stopped: stopped on request")
    assert "twin: nobody conducts it" in told.err
    assert main(["rm", "m1"]) == Exit.OK
    assert capsys.readouterr().out == "removed m1\n"


def test_a_wait_that_lasts_is_told_once_with_who_holds_the_device() -> None:
    why = "waits for a-1234, which holds cuda:0"
    cells = [CellView(number=n, values={"to": n}, state="queued", reason=why, on="local") for n in (1, 2)]
    waits = _Waits()
    assert waits.news(cells, 0.0) == []
    assert waits.news([], 1.0) == []
    assert waits.news(cells, 1.2) == [], "it passed on meanwhile"
    assert waits.news(cells, 3.0) == [f"to=1 {why}"]
    assert waits.news(cells, 9.0) == []


def test_what_queued_cells_wait_for_is_shown_once_for_all_that_do(tmp_path: Path) -> None:
    cells = [CellView(number=n, values={"to": n}, state="queued", reason="its partition is down") for n in (1, 2, 3)]
    free = CellView(number=4, values={"to": 4}, state="queued")
    snapshot = replace(read_sweep(tmp_path / "s"), cells=(*cells, free))
    running = replace(snapshot, state="running")
    assert "  queued 1 (to=1) and 2 more: its partition is down" in describe(running)
    assert "  not run 1 (to=1) and 2 more: its partition is down" in describe(snapshot)
    assert "queued 4" not in "".join(describe(snapshot))


def test_a_sweep_whose_folder_is_deleted_under_it_is_told_in_the_foreground(toy_actions: Path, home: Path) -> None:
    from conftest import command

    words = command([*COUNT, "--vary", "to=1,5000", "--name", "short-lived"])
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    folder = sweeps_root() / "short-lived"
    while not folder.exists() or read_sweep(folder).counts()["finished"] == 0:
        assert process.poll() is None
        time.sleep(0.05)
    shutil.rmtree(folder)
    _, told = process.communicate(timeout=60)
    assert process.returncode == Exit.FAILED
    assert "short-lived: its folder is gone; its conductor stops its jobs and leaves" in told


def test_a_dry_run_refuses_what_the_run_refuses(toy_actions: Path) -> None:
    (sweeps_root() / "mine").mkdir(parents=True)
    for words, told in (
        (["--name", "mine"], "there is a sweep 'mine' already"),
        (["--name", "../x"], "cannot be the name of a sweep"),
        (["--name", "last"], "stands for the latest sweep"),
        (["--on", "ray://127.0.0.1:1"], "cannot be reached"),
        (["--on", "local", "--on", "local"], "was given twice"),
    ):
        with pytest.raises(HfbenchError) as refused:
            main(["run", "toy.count", "--vary", "to=1", "--dry-run", *words])
        assert told in str(refused.value)


def test_named_cells_run_again_and_a_refusal_is_known_before_a_detached_sweep_is_left(
    hfbench: Hfbench, toy_actions: Path
) -> None:
    hfbench(*COUNT, "--vary", "to=1,2", "--pause", "0", "--name", "again")
    done = hfbench("sweep", "rerun", "again", "to=2", "--detach")
    assert (done.returncode, done.stdout) == (0, "again\n")
    assert wait_until_left(sweeps_root() / "again")
    assert [cell.attempt for cell in read_sweep(sweeps_root() / "again").cells] == [1, 2]
    script = sweeps_root() / "again" / "sweep.hfb.yaml"
    script.write_text(script.read_text().replace("2", "3"))
    refused = hfbench("sweep", "rerun", "again", "1", "--detach")
    assert (refused.returncode, refused.stdout) == (Exit.USAGE, "")
    assert "the script was changed since the sweep began" in refused.stderr
