"""`hfbench` itself: help, versions, typing mistakes, and pipes that break."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hfbench as package
from hfbench.cli import COMMANDS

Hfbench = Callable[..., "subprocess.CompletedProcess[str]"]

HEAVY = {
    "torch",
    "transformers",
    "numpy",
    "textual",
    "rich",
    "pydantic",
    "yaml",
    "platformdirs",
    "huggingface_hub",
    "safetensors",
    "pynvml",
    "sqlite3",
}
PROBE = """
import atexit, sys
from hfbench.__main__ import main
sys.argv = ["hfbench", *sys.argv[1:]]
atexit.register(lambda: print("LOADED", *sys.modules, file=sys.stderr))
sys.exit(main())
"""


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["demo", "--help"], ["bench", "generate", "--help"], ["bench"]]
)
def test_help_loads_nothing_heavy_and_writes_nothing(words: list[str], tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", "XDG_CACHE_HOME": ""}
    del env["HFBENCH_HOME"]
    done = subprocess.run([sys.executable, "-B", "-c", PROBE, *words], capture_output=True, text=True, env=env)
    [loaded] = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("LOADED")]
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["jobs", "--help"],
        ["jobs", "wait", "--help"],
        ["config", "--help"],
        ["bench", "generate", "--help"],
        ["gpus", "-h"],
        ["demo", "-h"],
    ],
)
def test_help_fits_eighty_columns_and_names_the_program(words: list[str], hfbench: Hfbench) -> None:
    done = hfbench(*words, env={"COLUMNS": "80"})
    assert done.returncode == 0
    assert done.stdout.startswith("usage: hfbench")
    assert "__main__" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_front_page_tells_commands_and_exit_codes(hfbench: Hfbench) -> None:
    told = hfbench("--help").stdout
    for word in [*COMMANDS, "bench generate", "demo", "gpus", "exit codes:", "--script FILE"]:
        assert word in told


def test_the_version_is_the_packages(hfbench: Hfbench) -> None:
    assert hfbench("--version").stdout == f"hfbench {package.__version__}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["jbos"], "did you mean 'hfbench jobs'?"),
        (["insepct", "demo"], "unknown command 'insepct'. Did you mean 'hfbench inspect'?"),
        (["bnech", "generate", "demo"], "did you mean 'hfbench bench generate'?"),
        (["no-such-thing", "at-all"], "unrecognized arguments: at-all. hfbench --help lists them"),
        (["bench", "genrate"], "did you mean 'hfbench bench generate'?"),
        (["bench", "nonsense"], "unknown command 'bench nonsense'. hfbench bench --help lists them"),
        (["--scirpt", "x"], "did you mean '--script'?"),
        (["jobs", "--nope"], "hfbench: jobs: unrecognized arguments: --nope"),
        (["jobs", "lits"], "hfbench: jobs: argument command: invalid choice: 'lits'"),
        (["jobs", "lits"], "did you mean 'list'?"),
        (["jobs", "show"], "the following arguments are required: job"),
        (["jobs", "list", "-n", "x"], "'x' is not a number of jobs"),
        (["config"], "the following arguments are required: what"),
        (["config", "chekc"], "did you mean 'check'?"),
        (["toy", "count", "--ot", "5"], "did you mean '--to'?"),
        (["toy", "count", "--to"], "expected one argument"),
        (["toy", "count", "--to", "0", "--pause", "x"], "to: 0 is below the least value 1; pause: 'x' is not a number"),
        (["toy", "count", "--timeout", "soon"], "'soon' is not a duration"),
        (["toy", "count", "--timeout", ""], "'' is not a duration"),
        (["toy", "count", "--wait", "--detach"], "not allowed with argument"),
        (["--check"], "--check, --dry-run, --results, --json, --skip-missing and --on need --script FILE"),
        (["evil\x1b[2J\u202e"], r"evil\x1b[2J\u202e"),
        (["actions", "demoo"], "did you mean 'demo'?"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_nearest_word(
    words: list[str], told: str, hfbench: Hfbench, toy_actions: Path
) -> None:
    done = hfbench(*words)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("hfbench: ")
    assert not line.startswith("hfbench: hfbench")
    assert told.lower() in line.lower()


@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "show", "nope"],
        ["toy", "count", "--to", "0"],
        ["toy", "count", "--nope"],
        ["config", "what"],
        ["actions", "x"],
    ],
)
def test_json_holds_the_error_and_nothing_else(words: list[str], hfbench: Hfbench, toy_actions: Path) -> None:
    done = hfbench(*words, "--json")
    assert json.loads(done.stdout)["error"]["exit"] == done.returncode == 2
    assert done.stdout.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_error(hfbench: Hfbench) -> None:
    for command in ("actions --schema", "docs print", "--help"):
        line = f"set -o pipefail; {sys.executable} -m hfbench {command} | head -c 0"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), command


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-", "2>&- >/dev/full"])
def test_an_output_that_cannot_be_written_is_no_traceback(redirection: str) -> None:
    line = f"{sys.executable} -m hfbench actions {redirection}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == (0 if redirection == ">&-" else 1)


@pytest.mark.parametrize("command", ["man", "docs read compare", "compare --help"])
def test_a_command_whose_output_is_closed_loses_it_and_ends_well(command: str) -> None:
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m hfbench {command} >&-"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_ascii_output_shows_what_it_can(hfbench: Hfbench, toy_actions: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    hfbench("toy", "count", "--to", "1", "--label", "größe", env=env)
    done = hfbench("jobs", "show", "last", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


def test_an_unforeseen_error_is_a_sentence_and_its_traceback_can_be_had(hfbench: Hfbench, tmp_path: Path) -> None:
    broken = "import hfbench.cli as c; c.main = lambda words: {}['gone']"
    run = [sys.executable, "-c", f"{broken}; from hfbench.__main__ import main; raise SystemExit(main())"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "hfbench: KeyError: 'gone'. HFBENCH_DEBUG=1 shows the traceback\n")
    told = subprocess.run(run, capture_output=True, text=True, env={**os.environ, "HFBENCH_DEBUG": "1"})
    assert "Traceback" in told.stderr


def test_every_generated_page_can_be_written_and_checked(hfbench: Hfbench, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    missing = hfbench("docs", "check", "--folder", folder)
    assert (missing.returncode, "hfbench docs write" in missing.stderr) == (1, True)
    assert hfbench("docs", "write", "--folder", folder).returncode == 0
    assert hfbench("docs", "check", "--folder", folder).returncode == 0
    (folder / "actions.md").write_text("# something else")
    assert hfbench("docs", "check", "--folder", folder).returncode == 1


def test_a_page_in_a_folder_that_cannot_be_made_is_a_sentence(hfbench: Hfbench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = hfbench("docs", "write", "--folder", tmp_path / "file" / "docs")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Not a directory" in done.stderr


@pytest.mark.parametrize("words", [["--ascii", "sweep", "list"], ["sweep", "list", "--ascii"], ["--ascii", "actions"]])
def test_ascii_is_taken_before_and_behind_a_command_that_prints(hfbench: Hfbench, home: Path, words: list[str]) -> None:
    done = hfbench(*words)
    plain = hfbench(*(word for word in words if word != "--ascii"))
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr)


def test_with_ascii_a_name_of_other_letters_is_escaped_and_behind_two_dashes_it_is_a_word(
    hfbench: Hfbench, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "modèle"
    folder.mkdir()
    for words in (["--ascii", "inspect", str(folder)], ["inspect", str(folder), "--ascii"]):
        told = hfbench(*words)
        assert "mod\\xe8le" in told.stdout + told.stderr
        assert (told.stdout + told.stderr).isascii()
    assert "modèle" in "".join([(told := hfbench("inspect", str(folder))).stdout, told.stderr])
    assert "--ascii" in hfbench("inspect", "--", "--ascii").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--no-mouse", "sweep", "list"], "--no-mouse is about the workbench, and sweep prints"),
        (["sweep", "list", "--no-mouse"], "hfbench --no-mouse, hfbench attach and hfbench tour take it"),
        (["inspect", "demo", "--theme", "hfbench-light"], "hfbench --theme, hfbench attach and hfbench tour take it"),
        (["inspect", "demo", "--no-color"], "NO_COLOR=1 in the environment"),
        (["--colour", "inspect", "demo"], "NO_COLOR=1 in the environment"),
    ],
)
def test_an_option_about_drawing_that_a_command_has_no_use_for_is_refused_with_what_to_do(
    hfbench: Hfbench, home: Path, words: list[str], told: str
) -> None:
    done = hfbench(*words)
    assert done.returncode == 2
    assert told in done.stderr


def test_options_before_a_command_that_draws_are_given_to_it() -> None:
    from hfbench.commands.display import settled

    asked = ["--ascii", "--baud", "9600", "--theme=hfbench-light", "attach"]
    assert settled(asked, lambda word: word == "attach") == [asked[-1], *asked[:-1]]
    shot = ["--theme", "hfbench-light", "screenshot", "--screen", "jobs"]
    assert settled(shot, lambda word: True) == ["screenshot", "--theme", "hfbench-light", "--screen", "jobs"]
    assert settled(["--ascii", "some/model"], lambda word: False) == ["--ascii", "some/model"]
