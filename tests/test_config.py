"""The configuration: defaults without a file, and one sentence for everything that is wrong in one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.commands.config import toml_lines
from hfbench.config import Config, ConfigError, plain, read_config

if TYPE_CHECKING:
    import subprocess

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
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(tmp_path: Path, text: str | bytes, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


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
