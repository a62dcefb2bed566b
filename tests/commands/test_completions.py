"""Completions in real shells, and the manual page through real formatters."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hfbench.commands.command_tree import Tree, command_tree
from hfbench.commands.completing.values import values
from hfbench.commands.completions import SHELLS, script
from hfbench.commands.front_page import COMMANDS
from hfbench.commands.man import page, running_options

JOB = "2026-01-05T08-00-00-bench.generate-abc123"

LINES = {
    "hfbench be": "hfbench bench",
    "hfbench bench gen": "hfbench bench generate",
    "hfbench bench generate --dty": "hfbench bench generate --dtype",
    "hfbench bench generate --dtype bf": "hfbench bench generate --dtype bf16",
    "hfbench bench generate --dtype=bf": "hfbench bench generate --dtype=bf16",
    "hfbench bench modes --modes eager,comp": "hfbench bench modes --modes eager,compile",
    "hfbench bench generate --device cp": "hfbench bench generate --device cpu",
    "hfbench verify-s": "hfbench verify-signature",
    "hfbench registry us": "hfbench registry user",
    "hfbench registry user gr": "hfbench registry user grant",
    "hfbench config k": "hfbench config keys",
    "hfbench jobs show ab": "hfbench jobs show abc123",
    "hfbench jobs show 2026": f"hfbench jobs show {JOB}",
    "hfbench check lab-org/mod": "hfbench check lab-org/model-7",
    "hfbench compare night": "hfbench compare nightly",
    "hfbench compare nightly gri": "hfbench compare nightly grid",
    "hfbench compare nightly ab": "hfbench compare nightly abc123",
    "hfbench report JOB --against night": "hfbench report JOB --against nightly",
    "hfbench report gri": "hfbench report grid",
    "hfbench baseline show night": "hfbench baseline show nightly",
    "hfbench baseline rm night": "hfbench baseline rm nightly",
    "hfbench sweep table gri": "hfbench sweep table grid",
    "hfbench kernel check soft": "hfbench kernel check softmax",
    "hfbench --theme hfbench-con": "hfbench --theme hfbench-contrast",
    "hfbench actions bench.gen": "hfbench actions bench.generate",
    "hfbench doctor --on slu": "hfbench doctor --on slurm:",
    "hfbench doctor --on h10": "hfbench doctor --on h100",
    "hfbench docs read recipes/nig": "hfbench docs read recipes/nightly",
    "hfbench jobs wait --js": "hfbench jobs wait --json",
    "hfbench completions zs": "hfbench completions zsh",
}
"""What stands before the tab, and how the line goes on."""

STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source {script}\n"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -D; source {script}\n"),
}


@pytest.fixture(scope="module")
def tree() -> Tree:
    return command_tree()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a job and a cached model, the scripts, and `hfbench` on the path."""
    folder = tmp_path_factory.mktemp("shells")
    (folder / "home" / "jobs" / JOB).mkdir(parents=True)
    (folder / "home" / "jobs" / JOB / "request.json").write_text("{}")
    (folder / "home" / "baselines").mkdir()
    (folder / "home" / "baselines" / "nightly.json").write_text("{}")
    (folder / "home" / "sweeps" / "grid").mkdir(parents=True)
    (folder / "home" / "sweeps" / "grid" / "sweep.json").write_text("{}")
    (folder / "home" / "config").mkdir()
    (folder / "home" / "config" / "config.toml").write_text('[executors.h100]\nkind = "ssh"\nhost = "h100"\n')
    (folder / "hub" / "models--lab-org--model-7" / "snapshots" / "1").mkdir(parents=True)
    (folder / "bin").mkdir()
    program = folder / "bin" / "hfbench"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hfbench "$@"\n')
    program.chmod(0o755)
    for shell in SHELLS:
        (folder / f"hfbench.{shell}").write_text(script(shell))
    return folder


@pytest.fixture
def variables(place: Path) -> dict[str, str]:
    mine = {
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "HFBENCH_HOME": str(place / "home"),
        "HF_HUB_CACHE": str(place / "hub"),
        "HOME": str(place),
        "TERM": "dumb",
        "PS1": "$ ",
        "COLUMNS": "200",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return {**os.environ, **mine}


class Shell:
    """An interactive shell in a terminal of its own."""

    def __init__(self, command: list[str], place: Path, variables: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(place)
                os.execvpe(command[0], command, variables)
            finally:
                os._exit(127)

    def type(self, text: str, wanted: str, seconds: float = 30.0) -> str:
        """Type, and read until this stands on the terminal or nothing more may come."""
        os.write(self.fd, text.encode())
        seen, end = "", time.monotonic() + seconds
        while wanted not in seen and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.2)[0]:
                seen += os.read(self.fd, 65536).decode(errors="replace")
        return seen

    def close(self) -> None:
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def shell(place: Path, variables: dict[str, str]) -> Iterator[Callable[[str], Shell]]:
    opened: list[Shell] = []

    def start(name: str) -> Shell:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
        command, line = STARTS[name]
        opened.append(Shell(command, place, variables))
        opened[-1].type(line.format(script=place / f"hfbench.{name}") + "echo rea''dy\n", "ready")
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.mark.parametrize("name", STARTS)
def test_a_tab_goes_on_as_the_declarations_say(shell: Callable[[str], Shell], name: str) -> None:
    at = shell(name)
    for typed, wanted in LINES.items():
        assert wanted in at.type(f"\x15{typed}\t", wanted), typed


def test_fish_goes_on_as_the_declarations_say(place: Path, variables: dict[str, str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    asked = "; ".join(f"echo; echo '# {line}'; complete -C '{line}'" for line in LINES)
    command = ["fish", "--no-config", "-c", f"source {place / 'hfbench.fish'}; {asked}"]
    done = subprocess.run(command, env=variables, cwd=place, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    answers = dict(part.split("\n", 1) for part in done.stdout.split("\n# ")[1:])
    for line, wanted in LINES.items():
        offered = [each.split("\t")[0] for each in answers[line].splitlines()]
        assert wanted.split(" ")[-1] in offered, line


@pytest.mark.parametrize("name", SHELLS)
def test_every_command_and_option_stands_in_the_script(place: Path, tree: Tree, name: str) -> None:
    text = (place / f"hfbench.{name}").read_text()
    for command in tree.commands.values():
        assert f"'{command.name}'" in text or command.name in text
        for option in command.options:
            for spelling in option.names:
                assert (spelling if name != "fish" else spelling.lstrip("-")) in text


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_is_what_its_shell_can_read(place: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run([name, "-n", place / f"hfbench.{name}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_housekeeping_command_tells_what_it_takes(tree: Tree) -> None:
    assert set(COMMANDS) <= {command.words[0] for command in tree.commands.values() if command.words}


def test_values_are_asked_without_textual_or_anything_heavy(home: Path) -> None:
    code = (
        "import sys; from hfbench.cli import main; [main(['completions', 'values', kind]) for kind in"
        " ('model', 'job', 'sweep', 'measured', 'place', 'environment', 'device')]; print('loaded', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.rpartition("loaded")[2].split())
    assert not modules & {"textual", "rich", "torch", "numpy", "transformers", "huggingface_hub", "hfbench.app"}


def test_a_word_that_would_break_a_line_is_never_offered(home: Path, hfbench: Any) -> None:
    (home / "sweeps" / "a\nb").mkdir(parents=True)
    (home / "sweeps" / "plain").mkdir()
    for each in (home / "sweeps").iterdir():
        (each / "sweep.json").write_text("{}")
    told = hfbench("completions", "values", "sweep")
    assert told.stdout == "plain\t\n"


@pytest.mark.parametrize("kind", ["job", "sweep", "nonsense", ""])
def test_where_there_is_nothing_a_tab_stays_silent(home: Path, kind: str) -> None:
    assert values(kind, "zz") == []


def test_a_broken_configuration_is_no_matter_for_a_tab(home: Path, hfbench: Any) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "config.toml").write_text("[environments\n")
    told = hfbench("completions", "values", "environment")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("here\t")


def test_the_manual_page_tells_every_command_with_its_own_options(tree: Tree) -> None:
    made = page(tree).replace("\\-", "-")
    sections = re.split(r"\n\.S[SH] (?:hfbench )?", made)
    common = running_options(tree)
    assert "--detach" in {name for each in common for name in each.names}
    for command in tree.commands.values():
        if command.action:
            [section] = [part for part in sections if re.match(rf"{re.escape(command.name)}( [\[\\]|\n)", part)]
            for each in (*command.options, *command.operands):
                assert each in common or "--help" in each.names or (each.names or (each.shown,))[-1] in section
    assert {"EXIT STATUS", "FILES"} <= {part.splitlines()[0] for part in sections}


@pytest.fixture
def on_terminal(tmp_path: Path) -> Callable[..., str]:
    """What `hfbench man` shows on a terminal where the path holds only these programs."""

    def shown(**programs: str) -> str:
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        pid, fd = pty.fork()
        if pid == 0:
            environment = {**os.environ, "PATH": str(tmp_path), "COLUMNS": "80"}
            os.execve(sys.executable, [sys.executable, "-m", "hfbench", "man"], environment)
        seen = b""
        try:
            while part := os.read(fd, 65536):
                seen += part
        except OSError:  # how a terminal says that the other side is gone
            pass
        os.close(fd)
        os.waitpid(pid, 0)
        return seen.decode()

    return shown


def test_on_a_terminal_man_shows_the_page(on_terminal: Callable[..., str]) -> None:
    text = on_terminal(man='#!/bin/sh\nread -r first\necho "man $* got $first"\nexec /bin/cat > /dev/null\n')
    assert text.startswith("man -l - got .TH HFBENCH 1")
    assert "SYNOPSIS" not in text


@pytest.mark.parametrize("programs", [{}, {"man": "#!/bin/sh\nexit 1\n"}], ids=["none", "one that cannot"])
def test_without_a_man_the_page_is_plain_text(on_terminal: Callable[..., str], programs: dict[str, str]) -> None:
    lines = on_terminal(**programs).splitlines()
    assert "    hfbench - a terminal workbench for model ops on GPU boxes" in lines
    assert not any(line.startswith(".") or "\\" in line for line in lines)


def test_formatters_find_no_fault_in_the_manual_page(tree: Tree, tmp_path: Path) -> None:
    file = tmp_path / "hfbench.1"
    file.write_text(page(tree))
    checks = {"mandoc": ["mandoc", "-T", "lint", "-W", "warning"], "groff": ["groff", "-man", "-Tutf8", "-ww", "-z"]}
    present = [command for name, command in checks.items() if shutil.which(name)]
    if not present:
        pytest.skip("neither mandoc nor groff is installed")
    for command in present:
        done = subprocess.run([*command, file], capture_output=True, text=True)
        assert (done.stdout + done.stderr, done.returncode) == ("", 0)
