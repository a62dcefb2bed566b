"""The Doctor screen: the last answer at once, checks made again beside it, and one of them in full."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hfbench.actions.environments import KnownEnvironment
from hfbench.doctor.result import CheckReport, Evidence
from hfbench.screens import doctor
from hfbench.screens.doctor import CheckTable, DoctorScreen
from hfbench.screens.doctor_asks import ExaminedAll, keep, kept_file, last_known
from hfbench.widgets.doctor_rows import Known

REPORTS = (
    CheckReport(
        id="driver.loaded",
        topic="driver",
        title="driver loaded",
        verdict="error",
        found="the driver library is there and no kernel module",
        evidence=(Evidence(read="no such file", where="/proc/driver/nvidia/version"),),
        remedy="load it: modprobe nvidia",
        why="Without the kernel module every CUDA program says that there is no device.",
        seconds=0.01,
    ),
    CheckReport(id="limits.files", topic="limits", title="open files", verdict="ok", found="20,000"),
    CheckReport(id="disks.room", topic="disks", title="room", verdict="warning", found="/scratch is full to 97%"),
)
PYTHON = KnownEnvironment(
    name="vllm",
    command=("/opt/vllm/bin/python",),
    python="3.12.4",
    machine="x86_64",
    glibc="2.35",
    versions={"torch": "2.9.0", "vllm": "0.11.0"},
    runs=("bench.load",),
    cannot_run={"engine.build": "no transformers", "chat": "no transformers"},
)
KNOWN = Known(checks={each.id: each for each in REPORTS}, environments={"vllm": PYTHON}, at=1000.0)


def table_of(pilot: Any) -> CheckTable:
    found: CheckTable = pilot.app.screen.query_one(CheckTable)
    return found


def verdicts(pilot: Any) -> dict[str, str]:
    """The verdict of each row by its key."""
    rows = table_of(pilot).rows
    return {rows[n].key: rows[n].cells["verdict"] for n in range(len(rows))}


def text(picture: Any, pilot: Any) -> str:
    return "\n".join(picture(pilot))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Checks that find nothing new, and only once this is set."""
    let_go = threading.Event()

    def examine(again: bool, stopped: Any, post: Any) -> None:
        let_go.wait(60)
        post(ExaminedAll())

    monkeypatch.setattr(doctor, "examine_all", examine)
    return let_go


async def test_the_last_answer_is_there_with_its_age_while_all_is_looked_at_again(
    bench: Any, until: Any, picture: Any, held: threading.Event
) -> None:
    assert keep(KNOWN, kept_file())
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("6")
        await until(pilot, lambda: verdicts(pilot))
        assert verdicts(pilot) == {
            "driver.loaded": "x error ...",
            "limits.files": "ok ...",
            "disks.room": "! warning ...",
            "environment:vllm": "ok ...",
        }
        shown = text(picture, pilot)
        assert "1 error, 1 warning, 1 ok" in shown
        assert "looking at driver, 12 of 12 topics left" in shown
        assert "modprobe nvidia" in shown
        held.set()
        await until(pilot, lambda: pilot.app.screen.at_rest or not pilot.app.screen.pending)
        assert set(verdicts(pilot).values()) == {"x error", "ok", "! warning"}
        assert "looked at 0 s ago" in text(picture, pilot)
        await until(pilot, lambda: json.loads(kept_file().read_text())["at"] > 1000)


async def test_only_trouble_a_filter_and_the_whole_text_of_one(
    bench: Any, until: Any, picture: Any, held: threading.Event
) -> None:
    assert keep(KNOWN, kept_file())
    held.set()
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("6")
        await until(pilot, lambda: verdicts(pilot) and not pilot.app.screen.pending)
        shown = text(picture, pilot)
        assert all(key in shown for key in ("enter open", "r again", "R all", "t only trouble", "/ filter", "q quit"))
        await pilot.press("t")
        assert list(verdicts(pilot)) == ["driver.loaded", "disks.room"]
        assert "only trouble is shown, t shows all" in text(picture, pilot)
        await pilot.press("enter")
        shown = text(picture, pilot)
        assert not table_of(pilot).display
        for told in ("x the driver library", "do ", "why ", "/proc/driver/nvidia/version: no such file", "enter back"):
            assert told in shown
        await pilot.press("escape")
        assert table_of(pilot).has_focus
        await pilot.press("enter", "enter", "t", "slash", *"vllm", "enter")
        assert list(verdicts(pilot)) == ["environment:vllm"]
        await pilot.press("enter")
        shown = text(picture, pilot)
        assert "2.9.0" in shown
        assert "engine.build, chat: no transformers" in shown
        await pilot.press("1", "6")
        await until(pilot, lambda: isinstance(pilot.app.screen, DoctorScreen) and verdicts(pilot))
        assert table_of(pilot).current == "environment:vllm"


async def test_rows_fill_in_from_this_machine_and_one_is_made_again(
    bench: Any, until: Any, picture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "not-a-number")
    async with bench().run_test(size=(120, 40)) as pilot:
        await pilot.press("6")
        await until(pilot, lambda: verdicts(pilot))
        await until(pilot, lambda: not pilot.app.screen.pending, 120)
        told = verdicts(pilot)
        assert len(told) > 40
        assert told["environment:here"] in ("ok", "x error")
        assert told["processor.threads"] != "ok"
        monkeypatch.delenv("OMP_NUM_THREADS")
        assert table_of(pilot).move_to("processor.threads")
        await pilot.press("r")
        await until(pilot, lambda: verdicts(pilot)["processor.threads"] == "ok" and not pilot.app.screen.pending)
        assert len(verdicts(pilot)) == len(told)
        await until(pilot, lambda: _kept("processor.threads") == "ok")


def _kept(id: str) -> str:
    """The verdict of a check as it is kept."""
    known = last_known(kept_file())
    return known.checks[id].verdict if known and id in known.checks else ""


# -- what is kept -------------------------------------------------------------


def test_what_is_kept_comes_back_and_whatever_else_stands_there_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "doctor.json"
    assert last_known(file) is None
    assert keep(KNOWN, file)
    assert last_known(file) == KNOWN
    told = json.loads(file.read_text())
    for wrong in ({**told, "host": "another"}, {**told, "form": 2}, {**told, "checks": [7]}, [], {"form": 1}, None):
        file.write_text(json.dumps(wrong))
        assert last_known(file) is None
    old = {**told, "checks": [*told["checks"], {**told["checks"][0], "id": "tape.wound", "topic": "tape"}]}
    file.write_text(json.dumps(old))
    assert last_known(file) == KNOWN, "a topic that is no more is left out"
    file.write_bytes(b"\xff{")
    assert last_known(file) is None
    assert [each.name for each in file.parent.iterdir()] == ["doctor.json"]


def test_a_place_that_cannot_be_written_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not keep(KNOWN, tmp_path / "file" / "doctor.json")


def test_what_was_never_complete_is_not_kept(tmp_path: Path) -> None:
    assert not keep(replace(KNOWN, at=None), tmp_path / "doctor.json")
    assert list(tmp_path.iterdir()) == []
