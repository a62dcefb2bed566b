"""Adding a capability means adding one file: a toy action is found everywhere without another edit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.actions.registry import ACTIONS_PATH, DuplicateAction, catalogue

Hfbench = Callable[..., "subprocess.CompletedProcess[str]"]

TOY = '''
"""toy.greet: say hello."""

from dataclasses import dataclass
from typing import Literal

from hfbench.actions.base import action
from hfbench.actions.params import param


@dataclass(frozen=True)
class Greeting:
    """What was said."""

    said: str

    def lines(self):
        """One line."""
        return [f"it said {self.said}"]


@action("toy.greet", result=Greeting)
@dataclass(frozen=True, kw_only=True)
class Greet:
    """Greet somebody in a loud voice."""

    name: str = param("Whom to greet", positional=True)
    times: int = param("How often", default=1, ge=1, le=3)
    mood: Literal["glad", "gloomy"] = param("In which mood", default="glad")

    def perform(self, run):
        run.progress("greet", 1, 1)
        return Greeting(said=f"hello {self.name} " * self.times)
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of actions with one file."""
    made = tmp_path / "mine"
    made.mkdir()
    (made / "greet.py").write_text(TOY)
    monkeypatch.setenv(ACTIONS_PATH, str(made))
    return made


def test_it_is_on_the_front_page(folder: Path, hfbench: Hfbench) -> None:
    done = hfbench("--help")
    assert "toy greet" in done.stdout
    assert "Greet somebody in a loud voice" in done.stdout


def test_it_has_a_help_page_of_its_own(folder: Path, hfbench: Hfbench) -> None:
    told = hfbench("toy", "greet", "--help").stdout
    for part in ("usage: hfbench toy greet", "Whom to greet", "at least 1, at most 3", "one of glad, gloomy", "--json"):
        assert part in told


def test_its_group_lists_it(folder: Path, hfbench: Hfbench) -> None:
    done = hfbench("toy", "--help")
    assert (done.returncode, "toy greet" in done.stdout) == (0, True)
    assert hfbench("toy").returncode == 2
    typo = hfbench("toy", "gret")
    assert (typo.returncode, typo.stdout) == (2, "")
    assert "did you mean 'hfbench toy greet'?" in typo.stderr.replace("Did", "did")


def test_it_has_a_schema(folder: Path, hfbench: Hfbench) -> None:
    body = json.loads(hfbench("actions", "--schema").stdout)["$defs"]["toy.greet"]
    assert body["required"] == ["name"]
    assert body["properties"]["times"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 3,
        "description": "How often",
        "default": 1,
    }
    assert body["properties"]["mood"]["enum"] == ["glad", "gloomy"]
    assert json.loads(hfbench("actions", "toy.greet", "--schema").stdout)["title"] == "toy.greet"


def test_it_is_in_the_reference(folder: Path, hfbench: Hfbench) -> None:
    page = hfbench("docs", "print").stdout
    assert "## toy.greet" in page
    assert "| `times` | int | `1` | How often; at least 1, at most 3 |" in page


def test_it_runs_as_a_job_and_shows_its_result(folder: Path, hfbench: Hfbench) -> None:
    assert hfbench("toy", "greet", "Ada").stdout == "it said hello Ada \n"
    told = json.loads(hfbench("toy", "greet", "Ada", "--times", "2", "--json").stdout)
    assert told["said"] == "hello Ada hello Ada "
    [second, _] = json.loads(hfbench("jobs", "list", "--json").stdout)
    assert (second["id"], second["state"], second["action"]) == (told["job"], "finished", "toy.greet")
    assert "it said hello Ada" in hfbench("jobs", "show", "last").stdout


def test_it_is_a_step_of_a_script(folder: Path, hfbench: Hfbench, tmp_path: Path) -> None:
    script = tmp_path / "greet.hfb.yaml"
    script.write_text("hfbench: 1\nsteps:\n  - toy.greet: {name: Ada, times: 2}\n")
    assert hfbench("--script", script, "--check").returncode == 0
    script.write_text("hfbench: 1\nsteps:\n  - toy.greet: {name: Ada, times: 9}\n")
    wrong = hfbench("--script", script, "--check")
    assert (wrong.returncode, "greatest value 3" in wrong.stderr) == (2, True)


# The form and the palette entry of the same toy are looked at with the screens: tests/screens.


def test_two_files_with_one_name_are_both_named(folder: Path, hfbench: Hfbench) -> None:
    (folder / "again.py").write_text(TOY)
    with pytest.raises(DuplicateAction) as caught:
        catalogue()
    assert str(folder / "again.py") in str(caught.value)
    assert str(folder / "greet.py") in str(caught.value)
    done = hfbench("toy", "greet", "Ada")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_one_with_a_name_of_hfbench_s_own_is_told_whatever_is_asked_for(folder: Path, hfbench: Hfbench) -> None:
    (folder / "greet.py").write_text(TOY.replace("toy.greet", "demo"))
    done = hfbench("files", folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "the action 'demo' is declared twice" in done.stderr
    assert str(folder / "greet.py") in done.stderr
    assert "hfbench/actions/demo.py" in done.stderr


@pytest.mark.parametrize("name", ["demo", "toy.greet"])
def test_beside_the_user_s_one_action_loads_its_file_alone(folder: Path, name: str) -> None:
    code = "import sys; from hfbench.commands.known import summaries; from hfbench.actions.registry import find;"
    code += f" assert {name!r} in summaries(); find({name!r}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert any(module.startswith("hfbench_actions_") and module.endswith(".greet") for module in loaded)
    assert ("hfbench.actions.demo" in loaded) == (name == "demo")
    assert "hfbench.actions.gpus" not in loaded


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(5)\n", "SystemExit: 5"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("x = '\udcff'\n", "SyntaxError"),
        (TOY.replace("toy.greet", "TOY").replace("greet:", "x:"), "is not of the form group.verb"),
    ],
    ids=["syntax", "import", "exit", "bug", "not UTF-8", "bad name"],
)
def test_a_broken_file_is_one_sentence_and_everything_else_works(
    folder: Path, hfbench: Hfbench, text: str, told: str
) -> None:
    (folder / "broken.py").write_bytes(text.encode("utf-8", "surrogateescape"))
    done = hfbench("--help")
    assert (done.returncode, "toy greet" in done.stdout) == (0, True)
    [line] = done.stderr.splitlines()
    assert line.startswith(f"hfbench: {folder / 'broken.py'}: cannot be loaded: ")
    assert told in line
    assert hfbench("toy", "greet", "Ada").returncode == 0


def test_an_action_that_could_not_be_loaded_says_why_it_is_unknown(folder: Path, hfbench: Hfbench) -> None:
    (folder / "greet.py").write_text("import no_such_module\n")
    done = hfbench("actions", "toy.greet")
    assert (done.returncode, done.stdout) == (2, "")
    assert "greet.py: cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Did you mean 'demo'?" in hfbench("actions", "demoo").stderr


def test_a_folder_that_is_not_there_is_told(folder: Path, hfbench: Hfbench) -> None:
    done = hfbench("actions", env={ACTIONS_PATH: "/no/such/folder"})
    assert (done.returncode, "bench.generate" in done.stdout) == (0, True)
    assert "/no/such/folder: is not a folder" in done.stderr


def test_a_users_file_never_hides_a_module_of_hfbench(folder: Path, hfbench: Hfbench) -> None:
    """It may even be called like one."""
    (folder / "greet.py").rename(folder / "demo.py")
    names = [each["name"] for each in json.loads(hfbench("actions", "--json").stdout)]
    assert {"toy.greet", "demo", "bench.generate"} <= set(names)
    assert names == sorted(names)


def test_no_action_is_called_like_a_housekeeping_command() -> None:
    """But those of `registry`: that command runs the actions of its group itself."""
    from hfbench.cli import COMMANDS

    assert {name.split(".")[0] for name in catalogue().actions} & set(COMMANDS) <= {"registry"}
