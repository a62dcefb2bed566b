"""What `hfbench` itself takes: its commands, its own options, its exit codes."""

from __future__ import annotations

import argparse

import hfbench
from hfbench.commands.parser import Parser

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would be a tenth of what `--help` costs
    from typing import Any

COMMANDS = {
    "tour": "a guided walk on the demo model in the workbench",
    "attach": "open the workbench where you left it",
    "jobs": "list, show, follow, cancel and remove jobs",
    "sweep": "run, resume and show many cells of one action or script",
    "config": "where the configuration is, what it says, whether it is right",
    "actions": "every action with its fields, or their JSON Schema",
    "registry": "a private hub for Hugging Face clients: init, serve, user, token",
    "completions": "print what completes these words in bash, zsh or fish",
    "man": "print the manual page",
    "docs": "read the documentation; write or check its generated pages",
}
"""Housekeeping commands, one a file in `commands/`, whose `parser()` tells what it takes; all others are actions."""
EXITS = [
    ("0", "fine"),
    ("1", "the thing asked about is wrong, or an expectation failed"),
    ("2", "usage: nothing was run"),
    ("3", "a step of a script failed or took too long"),
    ("4", "something is missing on this machine: a GPU, a package, a tool"),
    ("130, 143", "interrupted"),
]


def parser(epilog: str = "") -> Parser:
    """Options of `hfbench` without a command: the workbench, a script, the version."""
    made = Parser(
        prog="hfbench",
        usage="hfbench [MODEL]\n       hfbench COMMAND ...\n       hfbench --script FILE [--check | --dry-run]",
        description="A terminal workbench for model ops on GPU boxes.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=epilog,
    )
    made.add_argument("model", nargs="?", metavar="MODEL", help="open the workbench, on this model if one is given")
    made.add_argument(
        "--script", metavar="FILE", help="run a script; its results as lines of JSON, on a terminal for people"
    )
    made.add_argument("--check", action="store_true", help="with --script: only check the script")
    made.add_argument("--dry-run", action="store_true", help="with --script: print the steps, run nothing")
    made.add_argument("--results", metavar="FILE", help="with --script: write the results here instead")
    made.add_argument("--json", action="store_true", help="with --script: lines of JSON on a terminal, too")
    made.add_argument(
        "--on", default="", metavar="WHERE", help="with --script: where jobs run, such as slurm:PARTITION"
    )
    made.add_argument("--skip-missing", action="store_true", help="with --script: skip what this machine cannot run")
    add_drawing(made)
    made.add_argument("--version", action="version", version=f"hfbench {hfbench.__version__}")
    return made


def add_drawing(made: argparse.ArgumentParser) -> None:
    """The options by which the workbench draws; `commands/display.py` knows them, too."""
    made.add_argument("--ascii", action="store_true", help="draw with ASCII only; commands print with it")
    made.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    made.add_argument(
        "--baud", type=_baud, default=0, metavar="N", help="paint no more than a line of N bits/s carries"
    )
    made.add_argument("--theme", default="", metavar="NAME", help="the colours to begin with")


def drawing_of(given: argparse.Namespace) -> dict[str, Any]:
    """How the workbench is to draw, as `open_workbench` takes it."""
    return {"ascii": given.ascii, "mouse": not given.no_mouse, "baud": given.baud, "theme": given.theme}


def _baud(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bits a second, such as 9600")
    return int(text)
