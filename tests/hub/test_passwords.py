"""A password in an address gets nowhere: not into a job's files, and not onto the screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.__main__ import main
from hfbench.actions.hub_artifacts import Artifacts
from hfbench.actions.hub_open import HubOpen
from hfbench.actions.hub_search import HubSearch
from hfbench.actions.pull import Pull
from hfbench.actions.push import Push
from hfbench.errors import UsageError

AT = "http://alice:sesame@127.0.0.1:1"
MADE: tuple[Callable[[], object], ...] = (
    lambda: Pull(model="org/m", endpoint=AT),
    lambda: Pull(model=f"{AT}/org/m"),
    lambda: Push(folder="x", model="org/m", endpoint=AT),
    lambda: Push(folder="x", model=f"{AT}/org/m"),
    lambda: HubOpen(model="org/m", endpoint=AT),
    lambda: HubSearch(endpoint="https://token@host"),
    lambda: Artifacts(model="org/m", endpoint=AT),
)


@pytest.mark.parametrize("make", MADE)
def test_an_action_with_a_password_is_not_even_made(make: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match="holds a name or a password") as told:
        make()
    assert "sesame" not in str(told.value)


def test_what_only_looks_like_one_is_taken() -> None:
    Pull(model="lab:org/m@v1.0", endpoint="http://host:8000/hub")
    Pull(model="org/m@refs/pr/1")


def test_no_file_below_home_holds_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["hfbench", "pull", "org/m", "--endpoint", AT, "--json"])
    assert main() == 2
    told = capsys.readouterr()
    assert "sesame" not in told.out + told.err
    assert not [path for path in home.rglob("*") if path.is_file() and b"sesame" in path.read_bytes()]
