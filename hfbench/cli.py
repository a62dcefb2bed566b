"""The command line: finds the command a line of words asks for. Imports only what that command needs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import hfbench
from hfbench.actions.registry import actions
from hfbench.errors import UsageError
from hfbench.exits import Exit
from hfbench.text import nearest

COMMANDS = {
    "jobs": "list, show, follow, cancel and remove jobs",
    "config": "where the configuration is, what it says, whether it is right",
    "actions": "every action with its fields, or their JSON Schema",
    "docs": "write, check or print the generated pages",
}
"""Housekeeping commands, one a file in `commands/`; all other commands are actions."""


def main(words: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    if words and not words[0].startswith("-"):
        if words[0] in COMMANDS:
            command = import_module(f"hfbench.commands.{words[0]}")
            return int(command.main(words[1:]))
        if (found := _action(words)) is not None:
            return found
    return _front_page(words)


def _action(words: Sequence[str]) -> int | None:
    """Run the action that the first words name; None when they name none."""
    from hfbench.commands import perform

    known = actions()
    for length in (2, 1):
        name = ".".join(words[:length])
        if len(words) >= length and name in known:
            return perform.main(known[name], words[length:])
    group = [spec for spec in known.values() if spec.name.startswith(f"{words[0]}.")]
    if not group:
        return None
    rest = [word for word in words[1:] if not word.startswith("-")]
    if rest:
        near = nearest(rest[0], [spec.name.partition(".")[2] for spec in group])
        hint = f"did you mean 'hfbench {words[0]} {near}'?" if near else f"hfbench {words[0]} --help lists them"
        raise UsageError(f"unknown command '{words[0]} {rest[0]}'", remedy=hint)
    asked = bool(set(words[1:]) & {"-h", "--help"})
    print(f"usage: hfbench {words[0]} COMMAND ...\n")
    print(*_two_columns([(spec.name.replace(".", " "), spec.summary) for spec in group]), sep="\n")
    return Exit.OK if asked else Exit.USAGE


def _front_page(words: Sequence[str]) -> int:
    """Options of `hfbench` itself: the workbench, a script, the version."""
    parser = argparse.ArgumentParser(
        prog="hfbench",
        usage="hfbench [MODEL] | hfbench COMMAND ... | hfbench --script FILE [--check | --dry-run]",
        description="A terminal workbench for model ops on GPU boxes.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        epilog=_epilog() if {"-h", "--help"} & set(words) else "",
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help="open the workbench, on this model if one is given")
    parser.add_argument(
        "--script", metavar="FILE", type=Path, help="run a script without a terminal; results on stdout"
    )
    parser.add_argument("--check", action="store_true", help="with --script: only check the script")
    parser.add_argument("--dry-run", action="store_true", help="with --script: print the steps, run nothing")
    parser.add_argument("--results", metavar="FILE", type=Path, help="with --script: write the results here instead")
    parser.add_argument("--skip-missing", action="store_true", help="with --script: skip what this machine cannot run")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII only")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    parser.add_argument("--version", action="version", version=f"hfbench {hfbench.__version__}")
    given = parser.parse_args(words)
    if given.script:
        from hfbench.scripts.command import run_script

        return run_script(
            given.script,
            check=given.check,
            dry_run=given.dry_run,
            results=given.results,
            skip_missing=given.skip_missing,
        )
    if given.check or given.dry_run or given.results or given.skip_missing:
        raise UsageError("--check, --dry-run, --results and --skip-missing need --script FILE")
    return _workbench(given)


def _workbench(given: argparse.Namespace) -> int:
    """Open the terminal application."""
    model = given.model
    if model and not Path(model).exists() and "/" not in model:
        near = nearest(model, [*COMMANDS, *(name.split(".")[0] for name in actions())])
        hint = f"did you mean 'hfbench {near}'?" if near else "give a folder, or org/name of a cached model"
        raise UsageError(f"{model!r} is neither a command nor a model", remedy=hint)
    from hfbench.app import open_workbench

    return open_workbench(model, ascii=given.ascii, mouse=not given.no_mouse)


def _epilog() -> str:
    """The list of commands, actions first."""
    lines = [(spec.name.replace(".", " "), spec.summary) for spec in actions().values()]
    return "\n".join(
        ["actions (each takes --help, --json, --detach):", *_two_columns(lines)]
        + ["", "commands:", *_two_columns(list(COMMANDS.items()))]
        + [
            "",
            "exit codes: 0 fine, 1 the thing asked about is wrong, 2 usage, 3 a script's step failed, 4 something is missing",
        ]
    )


def _two_columns(lines: list[tuple[str, str]]) -> list[str]:
    width = max(len(left) for left, _ in lines)
    return [f"  {left:<{width}}  {right}" for left, right in lines]
