"""Options about drawing, wherever they stand on the line: handed to a command that draws, obeyed by one that prints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from hfbench.errors import UsageError

ASCII = "--ascii"
VALUED = ("--baud", "--theme")
OPTIONS = (ASCII, "--no-mouse", *VALUED)

TAKES = {"tour": OPTIONS, "attach": OPTIONS, "screenshot": ("--theme",)}
"""Commands that draw, and which of these options they know; all others print."""

COLOUR = ("--color", "--colour", "--no-color", "--no-colour", "--monochrome")
"""Options that people try; colours are a matter of the environment."""


def settled(words: Sequence[str], is_command: Callable[[str], bool]) -> list[str]:
    """The words with these options where they are understood. UsageError for one that its command has no use for."""
    leading, rest = _leading(words)
    if not rest or not is_command(rest[0]):
        return list(words)  # the workbench's own
    command, takes = rest[0], TAKES.get(rest[0], ())
    for option in leading:
        name = option[0].partition("=")[0]
        if name not in (*takes, ASCII):
            raise UsageError(f"{name} is about the workbench, and {command} prints", remedy=remedy_for(name))
    behind = [word for option in leading if option[0].partition("=")[0] in takes for word in option]
    plain = [ASCII] in leading and ASCII not in takes
    if ASCII not in takes and ASCII in (before := _before_operands(rest)):
        plain, rest = True, [word for word in before if word != ASCII] + list(rest[len(before) :])
    if plain:
        _print_ascii()
    return [command, *behind, *rest[1:]]


def remedy_for(option: str) -> str:
    """What to do in place of an option that a command does not know; empty for one that is none of these."""
    name = option.partition("=")[0]
    if name in COLOUR:
        return "NO_COLOR=1 in the environment draws and prints without colours"
    if name in OPTIONS:
        return f"leave it out; hfbench {name}, hfbench attach and hfbench tour take it"
    return ""


def _leading(words: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    """The options that stand before anything else, each with its value, and the words behind them."""
    found: list[list[str]] = []
    at = 0
    while at < len(words) and words[at].partition("=")[0] in OPTIONS:
        length = 2 if words[at] in VALUED else 1
        found.append(list(words[at : at + length]))
        at += length
    return found, list(words[at:])


def _before_operands(words: Sequence[str]) -> list[str]:
    """The words up to `--`, behind which none is an option."""
    return list(words[: words.index("--")] if "--" in words else words)


def _print_ascii() -> None:
    """Print as to a terminal that shows nothing else."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(encoding="ascii", errors="backslashreplace")  # type: ignore[union-attr]
