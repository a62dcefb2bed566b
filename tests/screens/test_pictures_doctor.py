"""The doctor's checks as pictures: the list, and one of them in full. What they found is made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW
from test_doctor import KNOWN
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.screens import doctor
from hfbench.screens.doctor_asks import ExaminedAll, keep, kept_file


@pytest.fixture(autouse=True)
def nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks find what they found before, whatever this machine is."""
    monkeypatch.setattr(doctor, "examine_all", lambda again, stopped, post: post(ExaminedAll()))


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a state and look."""

    @pytest.mark.parametrize("whole", [False, True], ids=["list", "whole"])
    def test_doctor(self, take: Any, until: Any, place: Path, look: Any, whole: bool) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            app: Any = pilot.app
            assert keep(replace(KNOWN, at=NOW - 7200), kept_file())
            await pilot.press("6")
            await until(pilot, lambda: app.screen.at_rest and app.screen.known.checks)
            if whole:
                await pilot.press("enter")

        take(look, scene)
