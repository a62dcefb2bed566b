"""`hfbench completions`: what completes hfbench's words in bash, zsh or fish, made from the declarations."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import hfbench
from hfbench.commands.parser import Parser
from hfbench.exits import Exit
from hfbench.text import printable

SHELLS = ("bash", "zsh", "fish")
VALUES = "values"
"""What the scripts ask at each tab."""

EPILOG = """
  bash: hfbench completions bash > ~/.local/share/bash-completion/completions/hfbench
  zsh:  hfbench completions zsh > a folder of $fpath/_hfbench
  fish: hfbench completions fish > ~/.config/fish/completions/hfbench.fish

Commands, options and choices stand in the script: make it again after an update. Models, jobs, sweeps and
environments are asked for at each tab."""


def main(words: Sequence[str]) -> int:
    """Print the script of a shell, or the values of a kind, a line each with what it is behind a tab."""
    given = parser().parse_args(words)
    if given.shell == VALUES:
        from hfbench.commands.completing.values import values

        for word, told in values(given.kind, given.begun):
            if word == printable(word):  # no shell could be given it by a line
                print(f"{word}\t{printable(told)}")
        return Exit.OK
    print(script(given.shell), end="")
    return Exit.OK


def script(shell: str) -> str:
    """The script of one of SHELLS."""
    from hfbench.commands.command_tree import command_tree

    made: str = import_module(f"hfbench.commands.completing.{shell}").script(command_tree())
    head = f"# hfbench {hfbench.__version__}, made by `hfbench completions {shell}`\n"
    first, _, rest = made.partition("\n")
    return f"{first}\n{head}{rest}" if first.startswith("#compdef") else head + made


def parser() -> Parser:
    """What it takes."""
    import argparse

    made = Parser(
        prog="hfbench completions",
        description="Print what completes hfbench's words; a shell reads it at its start.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG.strip("\n"),
    )
    made.add_argument("shell", choices=(*SHELLS, VALUES), help="the shell; values is what its script asks")
    made.add_argument("kind", nargs="?", default="", metavar="KIND", help="of values: job, model, ...")
    made.add_argument("begun", nargs="?", default="", metavar="BEGUN", help="of values: how the word begins")
    return made
