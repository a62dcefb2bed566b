"""Environments in the configuration: what is read, what is refused, and how one is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hfbench.commands.config import toml_lines
from hfbench.config import EnvironmentConfig, examine, plain
from hfbench.environments import declared, find, here
from hfbench.errors import MissingError, UsageError
from hfbench.paths import config_file


def write(text: str) -> Path:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)
    return config_file()


def test_environments_are_read_in_their_order_with_their_limits() -> None:
    write(
        '[environments.zeta]\npython = "~/z/bin/python"\n'
        '[environments.alpha]\ncommand = ["srun", "-n1", "python3"]\ntimeout = 5\n'
    )
    zeta, alpha = declared()
    assert (zeta.name, zeta.command) == ("zeta", (str(Path.home() / "z/bin/python"),))
    assert zeta.python == Path.home() / "z/bin/python"
    assert (alpha.command, alpha.timeout, alpha.python) == (("srun", "-n1", "python3"), 5.0, None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[environments.a]\npyhton = "/p"\n', r"unknown key 'environments.a.pyhton'. Did you mean 'python'\?"),
        ("[environments.a]\n", "environments.a has neither python nor command"),
        ('[environments.a]\npython = "/p"\ncommand = ["p"]\n', "environments.a has both python and command"),
        ('[environments.a]\ncommand = "srun python3"\n', r'is .*, not a list. Write command = \["srun", "python3"\]'),
        ('[environments.a]\npython = "/p"\ntimeout = 0\n', "environments.a.timeout is 0.0, not a number of seconds"),
        ('[environments.a]\npython = "/p"\ntimeout = nan\n', "environments.a.timeout is nan"),
        ('[environments.a]\ncommand = ["srun", ""]\n', "names no program"),
        ('[environments.here]\npython = "/p"\n', "'here' cannot be the name of an environment"),
        ('[environments."a/b"]\npython = "/p"\n', "'a/b' cannot be the name of an environment"),
        ('[environments]\na = "/p"\n', r"environments.a is '/p', not a table. Write \[environments.a\]"),
        ("environments = 3\n", "environments is 3, not a table"),
    ],
)
def test_a_wrong_environment_is_told_and_left_out(text: str, sentence: str) -> None:
    config, problems = examine(write(text))
    assert "a" not in config.environments or config.environments["a"].timeout > 0
    with pytest.raises(UsageError, match=sentence):
        raise problems[0]


def test_what_config_show_prints_reads_back_to_the_same() -> None:
    config, _ = examine(write('[environments."a b"]\ncommand = ["srun", "p\\"3"]\n[environments.c]\npython = "/c"\n'))
    again, problems = examine(write("\n".join(toml_lines(plain(config)))))
    assert not problems
    assert again == config
    assert again.environments["a b"] == EnvironmentConfig(command=("srun", 'p"3'))


def test_one_is_found_by_name_by_path_and_as_here() -> None:
    write(f'[environments.mine]\npython = "{sys.executable}"\n')
    assert find("mine").command == find(sys.executable).command == find("here").command == (sys.executable,)
    assert find("here") == here()


def test_what_is_not_there_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    write(f'[environments.trtllm]\npython = "{tmp_path / "python"}"\n')
    with pytest.raises(UsageError, match=r"no environment is called 'trtlm'. Did you mean 'trtllm'\?"):
        find("trtlm")
    with pytest.raises(UsageError, match=r"no environment is called 'x'. Write \[environments.x\] with python"):
        find("x")
    for name in ("trtllm", str(tmp_path / "python")):
        with pytest.raises(MissingError, match=f"{tmp_path}/python: there is no Python that can be run"):
            find(name)
