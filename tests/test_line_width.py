"""The width of lines: that of a terminal, at least 80; on a pipe nothing is cut and no word broken."""

from __future__ import annotations

import io
import os
import pty
import struct
import subprocess
import sys
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from subprocess import CompletedProcess
from termios import TIOCSWINSZ

import pytest

from hfbench.line_width import USUAL, broken_for, cut, cut_end, lines_of, paragraph, room


class Terminal(io.StringIO):
    """A stream that says it is a terminal and has no file."""

    def isatty(self) -> bool:
        return True


def shown(columns: int, *words: str | Path) -> list[str]:
    """What a command prints on a terminal of so many columns, stdout and stderr together."""
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    child = subprocess.Popen(
        [sys.executable, "-m", "hfbench", *map(str, words)], stdin=slave, stdout=slave, stderr=slave, env=env
    )
    os.close(slave)
    parts = list[bytes]()
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    assert child.wait(60) is not None
    return b"".join(parts).decode().replace("\r\n", "\n").splitlines()


def test_on_a_pipe_nothing_is_cut_and_sentences_are_still_broken() -> None:
    assert cut("n" * 5000, 11) == cut_end("n" * 5000) == "n" * 5000
    lines = paragraph("/" + "p" * 300 + " word" * 100, 11, most=2)
    assert lines[0] == "/" + "p" * 300
    assert all(len(line) <= USUAL - 11 for line in lines[1:])
    assert " ".join(lines) == "/" + "p" * 300 + " word" * 100


def test_within_a_width_lines_are_that_wide() -> None:
    with lines_of(100):
        assert (room(), room(30), room(30, shares=2)) == (100, 50, 40)
        assert len(cut("n" * 500, 11)) == 89
        assert paragraph("word " * 100, most=2)[1].endswith(" ...")
    assert room() > 1000


def test_columns_says_how_wide_a_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    for told, width in (("200", 200), ("40", 80), ("wide", 80), ("9" * 9, 80)):
        monkeypatch.setenv("COLUMNS", told)
        assert room() == width


def test_a_diagnostic_is_broken_between_words_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "hfbench: " + "word " * 20 + "/a-path-that-is/" + "x" * 60
    assert broken_for(io.StringIO(), text) == text
    lines = broken_for(Terminal(), text).split("\n")
    assert lines[-1] == "/a-path-that-is/" + "x" * 60
    assert all(len(line) <= 40 for line in lines[:-1])
    assert " ".join(lines) == text


def test_the_command_line_uses_the_width_of_its_terminal(
    hfbench: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    folder = tmp_path / ("models--org--" + "n" * 60) / "snapshots" / ("1" * 40)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    assert any(str(folder) in line for line in hfbench("inspect", folder).stdout.splitlines())
    wide, narrow = shown(250, "inspect", folder), shown(60, "inspect", folder)
    assert f"folder     {folder}" in wide
    assert all(len(line) <= 80 for line in narrow)
    assert any("..." in line for line in narrow)
    lost = tmp_path / "there" / "is" / "no" / "such" / "folder"
    assert all(len(line) <= 60 or str(lost) in line for line in shown(60, "inspect", lost))
