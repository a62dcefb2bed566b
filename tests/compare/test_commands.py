"""The commands as a person or CI runs them: exit codes, what goes to stderr, and sweeps as their folders stand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from measured_runs import HERE, make_job, result, times

from hfbench.compare.baselines import keep
from hfbench.compare.comparing import compare
from hfbench.compare.reading import read_subject
from hfbench.compare.result import Word
from hfbench.errors import UsageError
from hfbench.paths import sweeps_root


def hfbench(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of its own process."""
    return subprocess.run([sys.executable, "-m", "hfbench", *words], capture_output=True, text=True, timeout=60)


@pytest.fixture
def pair() -> tuple[str, str]:
    """Two jobs, the second slower by a fifth."""
    return make_job(result(times(0.05, seed=1)), number=1), make_job(result(times(0.06, seed=2)), number=2)


def test_a_condition_that_holds_ends_with_1_and_one_that_cannot_be_told_is_said_on_stderr(
    pair: tuple[str, str],
) -> None:
    failing = hfbench("compare", *pair, "--fail-if", "tpot.p50 > 1.05x")
    assert failing.returncode == 1
    assert "fails" in failing.stdout
    unclear = hfbench("compare", *pair, "--fail-if", "tpot.p50 > 1.2x", "--json")
    assert unclear.returncode == 0
    assert json.loads(unclear.stdout)["conditions"][0]["outcome"] == "undecided"
    loud = hfbench("compare", *pair, "--fail-if", "tpot.p50 > 1.2x")
    assert "tpot.p50 > 1.2x: undecided" in loud.stderr
    assert hfbench("compare", *pair, "--fail-if", "tpot > 1.2x", "--undecided", "fail").returncode == 1


def test_a_wrong_condition_ends_with_2_and_points_at_the_place(pair: tuple[str, str]) -> None:
    done = hfbench("compare", *pair, "--fail-if", "tpot.p50 > 1.05y")
    assert done.returncode == 2
    assert "'tpot.p50 > 1.05y', column 16: unknown unit 'y'" in done.stderr


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_condition_is_refused_and_not_dropped(pair: tuple[str, str], text: str) -> None:
    done = hfbench("compare", *pair, "--fail-if", text)
    assert (done.returncode, "--fail-if was given with nothing in it" in done.stderr) == (2, True)
    beside = hfbench("compare", *pair, "--fail-if", "tpot > 9x", "--fail-if", text)
    assert (beside.returncode, "here the name of a metric is missing" in beside.stderr) == (2, True)


def test_a_gate_that_compared_nothing_ends_with_1_and_says_so() -> None:
    a = make_job(result(times(0.05)), number=1)
    b = make_job(None, number=2, last={"kind": "failed", "error": {"found": "out of memory", "exit": 1}})
    done = hfbench("compare", a, b, "--fail-if", "tpot.p50 > 1.05x")
    assert done.returncode == 1
    assert "nothing was compared: that is a failure" in done.stderr
    assert hfbench("compare", a, b).returncode == 0


def test_a_baseline_is_set_listed_shown_compared_and_removed(pair: tuple[str, str]) -> None:
    assert hfbench("baseline", "set", "nightly", pair[0]).returncode == 0
    assert hfbench("baseline", "list").stdout.startswith("nightly  ")
    assert "tpot" in hfbench("baseline", "show", "nightly").stdout
    assert hfbench("jobs", "rm", pair[0]).returncode == 0
    assert hfbench("compare", "nightly", pair[1], "--fail-if", "tpot > 1.05x").returncode == 1
    again = hfbench("baseline", "set", "nightly", pair[1], "--once")
    assert (again.returncode, pair[0] in again.stdout, "left as it was" in again.stdout) == (0, True, True)
    assert hfbench("baseline", "rm", "nightly", "absent").returncode == 2
    assert hfbench("baseline", "rm", "nightly").returncode == 0
    assert "no baselines yet" in hfbench("baseline", "list").stdout


BUSY = [{"word": "busy-machine", "detail": "other processes kept 1.9 of 2 CPUs busy", "next": "wait"}]


def test_a_baseline_that_is_not_to_be_believed_is_kept_with_a_warning_and_shown_as_such(pair: tuple[str, str]) -> None:
    cold = {"asked": 2, "iterations": 0, "seconds": []}
    bad = make_job(result([0.05], verdicts=BUSY, warmup=cold), number=3)
    why = ("1 sample, too few for an interval", "0 of 2 warm-up iterations", "busy-machine: other processes kept 1.9")
    done = hfbench("baseline", "set", "bad", bad)
    assert done.returncode == 0
    assert "not to be believed" in done.stderr
    shown = hfbench("baseline", "show", "bad").stdout
    for each in why:
        assert each in done.stderr
        assert each in " ".join(done.stdout.split())
        assert each in " ".join(shown.split())
    (row,) = (line for line in shown.splitlines() if line.strip().startswith("tpot"))
    assert row.split()[1:] == ["50.0", "ms", "too", "few", "samples", "1", "busy-machine,", "few-samples"]
    fine = hfbench("baseline", "set", "good", pair[0])
    assert (fine.stderr, "doubt" in fine.stdout) == ("", False)
    (row,) = (line for line in hfbench("baseline", "show", "good").stdout.splitlines() if "  tpot" in line)
    assert (" .. " in row, row.split()[-2:]) == (True, ["100", "stable"])


@pytest.mark.parametrize("name", ["last", "3f9a1c", "2026-11-29T20-11-04-bench.generate-3f9a1c", "grid"])
def test_a_name_that_means_a_job_or_a_sweep_is_none_for_a_baseline(name: str) -> None:
    job = make_job(result(times(0.05)), number=1)
    make_sweep("grid", {1: job})
    with pytest.raises(UsageError, match=r"stands for a job|is the name of a sweep"):
        keep(name, read_subject(job), replace_it=True)


def test_a_baseline_that_is_named_as_a_job_is_does_not_hide_it() -> None:
    job = make_job(result(times(0.05)), number=1)
    file = keep("plain", read_subject(job), replace_it=False)
    for name in ("last", job[-6:]):
        file.with_name(f"{name}.json").write_bytes(file.read_bytes())
        with pytest.raises(UsageError, match=f"baseline:{name} and job:{name}"):
            read_subject(name)


def test_markdown_goes_to_stdout_and_a_named_file_is_written(pair: tuple[str, str], tmp_path: Path) -> None:
    assert hfbench("report", pair[0]).stdout.startswith("# bench.generate of smol\n")
    out = tmp_path / "report.xml"
    assert hfbench("report", pair[0], "--out", str(out)).returncode == 0
    assert out.read_text().startswith("<?xml")


def make_sweep(name: str, cells: dict[int, str | None], *, version: int = 1) -> None:
    """The folder of a sweep over `batch`: the job of each value, None for a cell that failed."""
    folder = sweeps_root() / name
    folder.mkdir(parents=True)
    about = {"v": version, "name": name, "made": 5.0, "on": ["local"], "hfbench": "9.9"}
    (folder / "sweep.json").write_text(json.dumps(about))
    (folder / "sweep.hfb.yaml").write_text("hfbench: 1\n")
    planned = {
        "kind": "planned",
        "axes": [{"name": "batch", "values": list(cells)}],
        "steps": [{"action": "bench.generate"}],
        "cells": [[value] for value in cells],
    }
    journal, events = [planned], [{"event": "run_started", "v": 1, "environment": HERE}]
    for number, (batch, job) in enumerate(cells.items(), 1):
        state = "finished" if job else "failed"
        ended = {
            "kind": "ended",
            "cell": number,
            "state": state,
            "reason": "" if job else "out of memory",
            "attempt": 1,
        }
        journal.append({**ended, "seconds": 1.0})
        if job:
            where = {"cell": {"batch": batch}, "number": number, "attempt": 1, "step": 1, "action": "bench.generate"}
            events.append(
                {"event": "step_finished", **where, "status": "ok", "job": job, "result": {}, "metrics": None}
            )
    (folder / "journal.jsonl").write_text("".join(json.dumps({"at": 6.0, **each}) + "\n" for each in journal))
    (folder / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))


def test_sweeps_are_compared_by_the_samples_of_their_jobs_and_a_cell_without_a_result_says_why() -> None:
    before = [make_job(result(times(0.05, seed=n)), number=n) for n in (1, 2)]
    after = [make_job(result(times(0.06, seed=n)), number=n) for n in (3, 4)]
    make_sweep("before", {1: before[0], 2: before[1], 4: None})
    make_sweep("after", {1: after[0], 2: after[1], 4: None})
    pair = compare(["before", "after"]).pairs[0]
    assert [cell.label for cell in pair.cells] == ["batch=1", "batch=2", "batch=4"]
    assert [each.word for each in pair.verdicts if each.metric == "tpot"] == [Word.SLOWER, Word.SLOWER]
    assert {each.n_a for each in pair.verdicts} == {100}
    assert pair.cells[2].note == "A has no result: out of memory; B has no result: out of memory"


def test_a_sweep_of_a_newer_version_and_jobs_that_are_gone_are_said_and_nothing_is_lost() -> None:
    job = make_job(result(times(0.05)), number=1)
    make_sweep("new", {1: job, 2: "2026-11-29T20-11-09-bench.generate-00000f"}, version=99)
    side = compare(["new", job]).sides[0]
    assert any("a newer hfbench made this sweep" in note for note in side.notes)
    assert any("of 1 step the jobs are gone" in note for note in side.notes)
