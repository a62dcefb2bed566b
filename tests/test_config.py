"""The configuration: defaults without a file, and one sentence for everything that is wrong in one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.commands.config import toml_lines
from hfbench.config import Config, ConfigError, ModelsConfig, UiConfig, examine, plain, read_config
from hfbench.paths import expand

GOOD = """
[models]
roots = ["~/models", "/data"]
[ui]
theme = "light"
refresh = 2
[keys]
"jobs.cancel" = "x,ctrl+k"
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "config.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)
    return path


def test_without_a_file_the_defaults_hold_and_none_is_made(tmp_path: Path) -> None:
    assert read_config(tmp_path / "none.toml") == Config()
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_read_over_the_defaults(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, GOOD))
    assert config.models.roots == ("~/models", "/data")
    assert (config.ui.theme, config.ui.refresh, config.ui.mouse) == ("light", 2.0, True)
    assert config.keys == {"jobs.cancel": "x,ctrl+k"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ui]\nthem = 'light'\n", "unknown key 'ui.them'. Did you mean 'theme'?"),
        ("[model]\n", "unknown key 'model'. Did you mean 'models'?"),
        ("zzz = 1\n", "unknown key 'zzz'. Known: models, ui, keys"),
        ("ui = 5\n", "ui is 5, not a table. Write [ui]"),
        ("[[ui]]\ntheme = 'x'\n", "not a table. Write [ui]"),
        ("[ui]\nmouse = 1\n", "ui.mouse is 1, not true or false"),
        ("[ui]\nrefresh = 'fast'\n", "ui.refresh is 'fast', not a number"),
        ("[ui]\nrefresh = true\n", "ui.refresh is True, not a number"),
        ("[ui]\nrefresh = 0.1\n", "ui.refresh is 0.1, not a number of at least 0.25"),
        ("[ui]\nrefresh = nan\n", "ui.refresh is nan, not a number of at least 0.25"),
        ("[ui]\nrefresh = inf\n", "ui.refresh is inf, not a number of at least 0.25"),
        ("[ui]\ntheme = 1979-05-27\n", "not text"),
        ("[models]\nroots = '/data'\n", "models.roots is '/data', not a list"),
        ("[models]\nroots = [1]\n", "models.roots is 1, not text"),
        ("[keys]\na = 5\n", "keys.a is 5, not text"),
        ("[ui]\ntheme = x\n", "is not TOML: Invalid value (at line 2, column 9)"),
        ("[ui]\n[ui]\n", "is not TOML: Cannot declare ('ui',) twice (at line 2"),
        (b"[ui]\ntheme = '\xff'\n", "byte 14 is not UTF-8. Save the file as UTF-8"),
        ("a = " + "[" * 5000, "a value is too long or too deep"),
        ("a = " + "9" * 5000, "a value is too long or too deep"),
        ('[ui]\n"\\u202e" = 1\n', r"unknown key 'ui.\u202e'"),
        ("\0", "is not TOML"),
        ("ui.theme.a = 1\n", "ui.theme is a table, not text"),
        ("ui.theme" + ".a" * 3000 + " = 1\n", "ui.theme is a table, not text"),
        ("[ui]\nrefresh = 0x" + "f" * 5000, "ui.refresh is a huge number, not a number"),
        ("[ui]\ntheme = [" + "'x', " * 99 + "]\n", "ui.theme is a list, not text"),
        (f"[ui]\nmouse = '{'x' * 999}'\n", "xxx..., not true or false"),
        ("keys = 5\n", "keys is 5, not a table. Write [keys]"),
        ("[keys]\napp.quit = 5\n", "keys.app.quit is 5, not text"),
        ("[keys]\napp.quit = 'Q'\n'app.quit' = 'q'\n", "keys.app.quit stands twice, with and without quotes"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(tmp_path: Path, text: str | bytes, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_with_dots_need_no_quotes_in_the_key_map(tmp_path: Path) -> None:
    text = '[keys]\napp.quit = "Q"\n"app.jobs" = "J"\nmodel.next-tab = "n"\n[keys.job]\ncancel = "X"\n[keys.empty]\n'
    keys = read_config(written(tmp_path, text)).keys
    assert keys == {"app.quit": "Q", "app.jobs": "J", "model.next-tab": "n", "job.cancel": "X"}


def test_a_key_map_may_be_nested_deeper_than_python_recurses(tmp_path: Path) -> None:
    deep = ".".join("a" * 3000)
    assert read_config(written(tmp_path, f"keys.{deep} = 'x'\n")).keys == {deep: "x"}


def test_all_problems_are_found_and_defaults_stand_in_for_them(tmp_path: Path) -> None:
    text = (
        "nope = 1\n[ui]\ntheme = 5\nmouse = false\nrefresh = 0\n[models]\nroots = ['a', 1, 2]\n[keys]\na = 1\nb = 'B'\n"
    )
    config, problems = examine(written(tmp_path, text))
    assert [problem.found.split(" is ")[0] for problem in problems] == [
        "unknown key 'nope'",
        "ui.theme",
        "models.roots",
        "models.roots",
        "keys.a",
        "ui.refresh",
    ]
    assert config == Config(models=ModelsConfig(roots=("a",)), ui=UiConfig(mouse=False, refresh=1.0), keys={"b": "B"})


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_config(tmp_path)


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@given(st.dictionaries(names, names, max_size=3), st.lists(names, max_size=3), names)
def test_what_is_shown_reads_back_and_is_safe_to_print(keys: dict[str, str], roots: list[str], theme: str) -> None:
    settings = {"models": {"roots": roots}, "ui": {"theme": theme, "mouse": False, "refresh": 0.5}, "keys": keys}
    lines = toml_lines(settings)
    assert tomllib.loads("\n".join(lines)) == settings
    assert all("\x1b" not in line and "\n" not in line and "\u202e" not in line for line in lines)


Hfbench = Callable[..., "subprocess.CompletedProcess[str]"]


def test_show_prints_a_file_that_means_the_same(home: Path, hfbench: Hfbench) -> None:
    (home / "config").mkdir(parents=True)
    written(home / "config", GOOD)
    shown = hfbench("config", "show").stdout
    written(home / "config", shown)
    assert hfbench("config", "show").stdout == shown
    assert json.loads(hfbench("config", "show", "--json").stdout) == json.loads(json.dumps(plain(read_config())))


def test_path_and_check_answer_without_a_file_and_write_none(home: Path, hfbench: Hfbench) -> None:
    assert hfbench("config", "path").stdout == f"{home / 'config' / 'config.toml'}\n"
    assert json.loads(hfbench("config", "path", "--json").stdout)["jobs"] == str(home / "jobs")
    done = hfbench("config", "check")
    assert (done.returncode, done.stdout) == (0, "ok: no file, defaults hold\n")
    assert not home.exists()


def test_check_ends_with_the_code_of_a_wrong_request(home: Path, hfbench: Hfbench) -> None:
    (home / "config").mkdir(parents=True)
    written(home / "config", "[ui]\nthem = 'light'\n")
    done = hfbench("config", "check")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    told = json.loads(hfbench("config", "check", "--json").stdout)
    assert told["error"]["exit"] == 2


def test_check_tells_all_that_is_wrong_a_line_each(home: Path, hfbench: Hfbench) -> None:
    themes = home / "config" / "themes"
    themes.mkdir(parents=True)
    (themes / "mine.toml").write_text('name = "mine"\ncolours = 1\n')
    written(
        home / "config", "[ui]\nmouse = 1\ntheme = 'hfbench-drak'\n[keys]\napp.jbos = 'J'\nzzz = 'z'\njobs.copy = 'Y'\n"
    )
    done = hfbench("config", "check")
    assert (done.returncode, done.stdout) == (2, "")
    place = f"hfbench: {home / 'config' / 'config.toml'}: "
    assert done.stderr.splitlines() == [
        f"{place}ui.mouse is 1, not true or false",
        f"hfbench: {themes / 'mine.toml'}: colours: is not known; did you mean 'colors'?",
        f"hfbench: {themes / 'mine.toml'}: colors: is missing",
        f"{place}ui.theme: there is no theme 'hfbench-drak'. Did you mean 'hfbench-dark'?",
        f"{place}keys.app.jbos names no binding. Did you mean 'app.jobs'? `hfbench config keys` lists them all",
        f"{place}keys.zzz names no binding. hfbench config keys lists them",
    ]
    told = json.loads(hfbench("config", "check", "--json").stdout)
    assert (told["ok"], len(told["problems"]), told["error"]) == (False, 6, told["problems"][0])


def test_a_theme_of_the_users_may_be_chosen(home: Path, hfbench: Hfbench) -> None:
    from hfbench.paths import packaged_themes

    themes = home / "config" / "themes"
    themes.mkdir(parents=True)
    text = (packaged_themes() / "hfbench-dark.toml").read_text()
    (themes / "mine.toml").write_text(text.replace('name = "hfbench-dark"', 'name = "mine"'))
    written(home / "config", "[ui]\ntheme = 'mine'\n[keys]\napp.quit = 'Q'\n")
    done = hfbench("config", "check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_keys_lists_every_binding_with_the_keys_that_hold(home: Path, hfbench: Hfbench) -> None:
    (home / "config").mkdir(parents=True)
    written(home / "config", "[keys]\napp.quit = 'Q,ctrl+x'\n")
    lines = hfbench("config", "keys").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    [quit] = [line.split() for line in lines if line.startswith("app.quit ")]
    assert quit == ["app.quit", "Q,ctrl+x", "quit", "(was", "q)"]
    told = {each["id"]: each for each in json.loads(hfbench("config", "keys", "--json").stdout)}
    assert told["app.quit"] == {"id": "app.quit", "keys": "Q,ctrl+x", "label": "quit", "default": "q"}
    assert {"screen.back", "jobs.cancel", "model.close-detail", "form.start"} <= told.keys()
    assert told["jobs.cancel"]["keys"] == told["jobs.cancel"]["default"] != ""


@pytest.mark.parametrize("words", [["path"], ["show"], ["--help"]])
def test_only_check_and_keys_load_the_workbench(words: list[str]) -> None:
    code = f"import sys; from hfbench.commands.config import main\ntry: main({words!r})\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not {"textual", "hfbench.app", "hfbench.theming"} & set(done.stdout.split())


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero")])
def test_a_configuration_that_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "config.toml")
    _, problems = examine(tmp_path / "config.toml")
    assert "no regular file" in str(problems[0])


@pytest.mark.parametrize("root", ["", "  ", "\\u0000"])
def test_a_root_without_a_name_is_told_and_left_out(tmp_path: Path, root: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'[models]\nroots = ["{root}", "/models"]\n')
    config, problems = examine(path)
    assert config.models.roots == ("/models",)
    assert "a folder without a name" in str(problems[0])


def test_the_home_of_a_user_who_is_not_there_is_a_path_like_any_other() -> None:
    assert expand("~no-such-user/models") == Path("~no-such-user/models")
    assert expand("~/models") == Path.home() / "models"
