"""The command line: finds the command a line of words asks for. Imports only what that command needs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module

from hfbench.commands import display, front_page
from hfbench.commands.front_page import COMMANDS, EXITS
from hfbench.errors import UsageError
from hfbench.exits import Exit
from hfbench.text import nearest

WIDTH = 80


def main(words: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    words = display.settled(words, _is_command)
    if words and not words[0].startswith("-"):
        if words[0] in COMMANDS:
            command = import_module(f"hfbench.commands.{words[0]}")
            return int(command.main(words[1:]))
        if (found := _action(words)) is not None:
            return found
    return _front_page(words)


def _is_command(word: str) -> bool:
    """Whether a word begins a command line, and is not a model to open the workbench on."""
    from hfbench.commands.known import summaries

    return word in COMMANDS or any(name.replace("_", "-").partition(".")[0] == word for name in summaries())


def _action(words: Sequence[str]) -> int | None:
    """Run the action that the first words name; None when they name none."""
    from hfbench.commands.known import summaries  # `hfbench --version` needs none of it

    known = summaries()
    for length in (2, 1):
        name = ".".join(words[:length]).replace("-", "_")  # names of actions are words of scripts, too
        if len(words) >= length and name in known:
            from hfbench.actions.registry import find
            from hfbench.commands import perform

            return perform.main(find(name), words[length:])
    group = {name: summary for name, summary in known.items() if name.startswith(f"{words[0]}.")}
    if not group:
        return None
    rest = [word for word in words[1:] if not word.startswith("-")]
    if rest:
        near = nearest(rest[0], [name.partition(".")[2] for name in group])
        hint = f"did you mean 'hfbench {words[0]} {near}'?" if near else f"hfbench {words[0]} --help lists them"
        raise UsageError(f"unknown command '{words[0]} {rest[0]}'", remedy=hint)
    asked = bool(set(words[1:]) & {"-h", "--help"})
    print(f"usage: hfbench {words[0]} COMMAND ...\n")
    print(*_two_columns(_commands(group)), sep="\n")
    return Exit.OK if asked else Exit.USAGE


def _front_page(words: Sequence[str]) -> int:
    """Options of `hfbench` itself: the workbench, a script, the version."""
    parser = front_page.parser(_epilog() if {"-h", "--help"} & set(words) else "")
    given, rest = parser.parse_known_args(words)
    if rest:
        if given.model == words[0] and (near := _near_command(words)):
            raise UsageError(f"unknown command {given.model!r}", remedy=near)
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if given.script is not None:
        return _script(given)
    if given.check or given.dry_run or given.results or given.skip_missing or given.on or given.json:
        raise UsageError("--check, --dry-run, --results, --json, --skip-missing and --on need --script FILE")
    return _workbench(given)


def _script(given: argparse.Namespace) -> int:
    from pathlib import Path

    from hfbench.commands.script_shown import shown_by
    from hfbench.scripts.command import run_script

    return run_script(
        Path(given.script),
        check=given.check,
        dry_run=given.dry_run,
        results=Path(given.results) if given.results else None,
        skip_missing=given.skip_missing,
        on=given.on,
        shows=shown_by(as_json=given.json),
    )


def _workbench(given: argparse.Namespace) -> int:
    """Open the terminal application."""
    if given.model:
        _refuse_unknown(given.model)
    from hfbench.app import open_workbench

    return open_workbench(given.model, **front_page.drawing_of(given))


def _refuse_unknown(model: str) -> None:
    """UsageError when a word is neither a command nor leads to a model."""
    from hfbench.models.reference import NotFound, resolve

    try:
        resolve(model)
    except NotFound as error:
        raise UsageError(error.found, where=error.where, remedy=_near_command([model]) or error.remedy) from error


def _near_command(words: Sequence[str]) -> str:
    """`did you mean 'hfbench x'?` for words that begin with almost a command, else an empty string."""
    from hfbench.commands.known import summaries

    names = [name.split(".") for name in summaries()]
    pairs = [" ".join(name) for name in names if len(name) > 1]
    near = nearest(" ".join(words[:2]), pairs) if len(words) > 1 else None
    near = near or nearest(words[0], [*COMMANDS, *(name[0] for name in names)])
    return f"did you mean 'hfbench {near}'?" if near else ""


def _epilog() -> str:
    """The list of commands, actions first."""
    from hfbench.commands.known import summaries

    parts = {
        "actions (each takes --help, --json, --detach):": _commands(summaries()),
        "commands:": list(COMMANDS.items()),
        "exit codes:": EXITS,
    }
    return "\n\n".join("\n".join([title, *_two_columns(told)]) for title, told in parts.items())


def _commands(known: Mapping[str, str]) -> list[tuple[str, str]]:
    """Actions as the command line spells them, with their summaries."""
    return [(name.replace(".", " ").replace("_", "-"), summary) for name, summary in known.items()]


def _two_columns(lines: list[tuple[str, str]]) -> list[str]:
    """Words and what they mean, wrapped to 80 columns."""
    from textwrap import wrap

    width = max(len(left) for left, _ in lines)
    told = []
    for left, right in lines:
        first, *more = wrap(right, WIDTH - width - 4)
        told += [f"  {left:<{width}}  {first}", *(" " * (width + 4) + line for line in more)]
    return told
