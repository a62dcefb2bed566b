"""The doctor as a whole: checks that hang or fail, what is chosen, and its rows."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from doctor_machines import DRIVER
from gpu_readings import card

from hfbench.doctor.check import Check, Outcome, all_checks, ok
from hfbench.doctor.result import CheckReport, DoctorReport
from hfbench.doctor.run import chosen, examine, report_of
from hfbench.doctor.system import System
from hfbench.errors import UsageError
from hfbench.line_width import lines_of


def check_that(look: Any, limit: float = 1.0) -> Check:
    return Check(id="disks.toy", title="toy", why="", limit=limit, look=look)


def test_a_check_that_hangs_is_unknown_after_its_time_and_the_next_one_is_made(machine: Any) -> None:
    let_go = threading.Event()

    def hangs(system: System) -> Outcome:
        let_go.wait(60)
        return ok("late")

    report = examine(machine(), [check_that(hangs, 0.1), check_that(lambda system: ok("fine"))])
    let_go.set()
    assert [each.verdict for each in report.checks] == ["unknown", "ok"]
    assert "no answer within 100 ms" in report.checks[0].found
    assert report.seconds < 30


def test_a_fault_of_a_check_is_unknown_and_says_which(machine: Any) -> None:
    def fails(system: System) -> Outcome:
        raise ValueError("a machine\nof another kind")

    report = report_of(check_that(fails), machine())
    assert (report.verdict, report.found) == (
        "unknown",
        "the check met what it does not know: ValueError: a machine\\nof another kind",
    )


def test_no_check_fails_on_a_machine_without_any_file(tmp_path: Any) -> None:
    bare = System(
        root=tmp_path,
        environ={},
        cwd=tmp_path,
        run=lambda words, seconds: None,
        room=lambda folder: None,
        stamp=lambda folder: None,
        pythons_read=lambda: (),
    )
    faults = [each for each in examine(bare, all_checks()).checks if "does not know" in each.found]
    assert [each.id for each in faults] == ["environments.here"]  # this Python is always one of them


def test_a_healthy_machine_with_cards_has_no_error(machine: Any) -> None:
    report = examine(machine(files=DRIVER, cards=[card(0, compute_capability="9.0")]), all_checks())
    assert [each for each in report.checks if each.verdict == "error"] == []
    assert not report.failed


def test_topics_and_ids_choose_together() -> None:
    ids = [each.id for each in chosen(["limits"], ["hub.offline"])]
    assert ids == ["limits.files", "limits.processes", "limits.locked", "limits.core", "hub.offline"]
    assert chosen([], []) == all_checks()


@pytest.mark.parametrize(
    ("topics", "only", "told"),
    [
        (["dsks"], [], "did you mean 'disks'?"),
        (["zzz"], [], "topics are driver, cards"),
        ([], ["disks.rom"], "did you mean 'disks.room'?"),
        ([], ["room"], "did you mean 'disks.room'?"),
        ([], ["disks"], "it is a topic: hfbench doctor disks"),
        ([], ["zzz"], "hfbench doctor --json tells the ids"),
    ],
)
def test_a_word_that_names_nothing_offers_the_nearest(topics: list[str], only: list[str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(topics, only)
    assert told.lower() in str(caught.value).lower()


def test_rows_fit_a_terminal_of_80_columns(machine: Any) -> None:
    system = machine(environ={"HF_ENDPOINT": "https://" + "long." * 40 + "example.org", "TERM": "dumb"})
    with lines_of(80):
        lines = examine(system, all_checks()).lines()
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith(f"{2} warnings, ")


def test_only_errors_fail() -> None:
    def of(*verdicts: Any) -> DoctorReport:
        checks = tuple(CheckReport(id="a.b", topic="a", title="t", verdict=each, found="f") for each in verdicts)
        return DoctorReport(checks=checks, host="h", seconds=0.1)

    assert not of("ok", "warning", "unknown").failed
    assert of("ok", "error").failed
    assert of("error", "error", "warning", "ok").headline == "2 errors, 1 warning, 1 ok"


def test_the_page_of_the_doctor_lists_every_check() -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    rows = [f"| `{each.id}` | {each.title} | {each.why} |" for each in all_checks()]
    assert [row for row in page.splitlines() if row.startswith("| `") and "." in row.split("`")[1]] == rows
