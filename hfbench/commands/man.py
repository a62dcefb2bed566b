"""`hfbench man`: the manual page, made from the declarations."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

import hfbench
from hfbench.commands.command_tree import Command, Taken, Tree, command_tree
from hfbench.commands.front_page import EXITS
from hfbench.commands.man_shown import show
from hfbench.commands.parser import Parser
from hfbench.errors import begun
from hfbench.exits import Exit

KEYS = [
    ("?", "help for what has the keys"),
    (": or ctrl+p", "the palette: everything that can be done"),
    (";", "jump to any region by a letter"),
    ("/", "filter"),
    ("1 to 9", "the main screens"),
    ("esc", "back"),
    ("q", "leave; jobs go on"),
]
ENVIRONMENT = [
    ("HFBENCH_HOME", "one folder for configuration, jobs, cache and state, in place of the XDG folders"),
    ("HFBENCH_ACTIONS", "folders with further actions, separated by colons"),
    ("HFBENCH_DEBUG", "show the traceback of what was not foreseen"),
    ("HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN", "as Hugging Face's own tools read them"),
    ("HF_HUB_OFFLINE", "ask no network"),
    ("NO_COLOR", "draw without colours"),
    ("TERM, LC_ALL, LC_CTYPE, LANG", "a terminal that cannot show UTF-8 gets ASCII, as with --ascii"),
]
FILES = [
    ("~/.config/hfbench/config.toml", "the configuration; hfbench config path tells where it is"),
    ("~/.local/share/hfbench/jobs", "one folder a job; they are kept until they are removed"),
    ("~/.cache/hfbench", "what can be made again"),
    ("~/.local/state/hfbench", "where each workbench was left, for hfbench attach"),
]


SYNOPSIS = ("[\\fIMODEL\\fP]", "\\fICOMMAND\\fP ...", "\\-\\-script \\fIFILE\\fP")


def main(words: Sequence[str]) -> int:
    """Show the page on a terminal, print it elsewhere."""
    parser().parse_args(words)
    made = page(command_tree())
    if sys.stdout.isatty():
        show(made)
    else:
        print(made, end="")
    return Exit.OK


def parser() -> Parser:
    """What it takes."""
    return Parser(
        prog="hfbench man",
        description="Show the manual page on a terminal; elsewhere print it in roff: hfbench man > hfbench.1.",
    )


def page(tree: Tree) -> str:
    """The manual page of all commands in the man macros of roff."""
    return "\n".join([*_head(tree), *_commands(tree), *_tables()]) + "\n"


def _head(tree: Tree) -> Iterator[str]:
    top = tree.commands[""]
    yield f'.TH HFBENCH 1 {time.strftime("%Y-%m-%d")} "hfbench {hfbench.__version__}" "User Commands"'
    yield from (".SH NAME", f"hfbench {_ESCAPED_DASH} {_text('a terminal workbench for model ops on GPU boxes')}")
    yield ".SH SYNOPSIS"
    yield "\n.br\n".join(f"\\fBhfbench\\fP {words}" for words in SYNOPSIS)
    yield from (".SH DESCRIPTION", _text(f"{top.summary}. Without a command it opens the workbench."))
    yield _text("Every action is a command, a form in the workbench and a step of a script; ")
    yield _text("most run as jobs, which go on when the terminal is closed.")
    yield ".SH OPTIONS"
    for option in top.options:
        yield from _taken(option)


def _commands(tree: Tree) -> Iterator[str]:
    yield ".SH COMMANDS"
    groups = set(tree.groups())
    running = frozenset(running_options(tree))
    for name, command in tree.commands.items():
        if command.action or (name and name not in groups):
            yield from _command(command, running if command.action else frozenset())
    yield ".SH OPTIONS OF EVERY ACTION"
    for each in running_options(tree):
        yield from _taken(each)


def running_options(tree: Tree) -> list[Taken]:
    """What all actions take beside their own fields."""
    first, *others = [command.options for command in tree.commands.values() if command.action]
    return [each for each in first if all(each in options for options in others)]


def _command(command: Command, elsewhere: frozenset[Taken]) -> Iterator[str]:
    operands = " ".join(_operand(each) for each in command.operands)
    yield f".SS hfbench {_text(command.name)} {operands}".rstrip()
    yield _text(f"{begun(command.summary)}.")
    for each in (*command.operands, *command.options):
        if "--help" not in each.names and each not in elsewhere:
            yield from _taken(each)


def _taken(each: Taken) -> Iterator[str]:
    names = [f"\\fB{_text(name)}\\fP" for name in each.names]
    value = f"\\fI{_text(each.shown)}\\fP" if each.shown else ""
    yield ".TP"
    yield f"{', '.join(names)} {value}".strip()
    yield _text(f"{begun(each.help or each.shown.lower())}.")


def _operand(each: Taken) -> str:
    word = f"\\fI{_text(each.shown)}\\fP{' ...' if each.many else ''}"
    return word if each.required else f"[{word}]"


def _tables() -> Iterator[str]:
    parts = {"KEYS": KEYS, "EXIT STATUS": EXITS, "ENVIRONMENT": ENVIRONMENT, "FILES": FILES}
    for title, told in parts.items():
        yield f".SH {title}"
        for name, meaning in told:
            yield from (".TP", f"\\fB{_text(name)}\\fP", _text(f"{meaning}."))


_ESCAPED_DASH = "\\-"


def _text(text: str) -> str:
    """A line of text that roff takes for nothing else."""
    safe = text.replace("\\", "\\e").replace("-", _ESCAPED_DASH).replace("'", "\\(aq").replace("`", "\\(ga")
    safe = safe.replace("^", "\\(ha").replace("~", "\\(ti").replace('"', "\\(dq")
    safe = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in safe)
    return f"\\&{safe}" if safe.startswith(".") else safe
