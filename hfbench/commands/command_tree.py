"""Every command with its words, options and operands, as data: what completions and the manual page are made from."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from hfbench.actions.params import Param
from hfbench.commands import front_page
from hfbench.commands.known import known_actions
from hfbench.commands.perform import parser_for

Kind = Literal[
    "",
    "path",
    "model",
    "job",
    "sweep",
    "baseline",
    "measured",
    "environment",
    "kernel",
    "device",
    "place",
    "action",
    "theme",
    "page",
]
"""What a word stands for, where it is none of some choices; empty for any text."""

KINDS: Mapping[str, Kind] = {
    "model": "model",
    "job": "job",
    "sweep": "sweep",
    "baseline": "baseline",
    "things": "measured",
    "subject": "measured",
    "against": "measured",
    "of": "measured",
    "where": "place",
    "kernel": "kernel",
    "device": "device",
    "action": "action",
    "theme": "theme",
    "page": "page",
    "runs_in": "environment",
    "environment": "environment",
    "file": "path",
    "folder": "path",
    "path": "path",
    "script": "path",
}
"""By the metavar in small letters, else by the name."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """One option or operand. `names` are an option's spellings, empty for an operand; `shown` is its value's word."""

    names: tuple[str, ...] = ()
    shown: str = ""
    help: str = ""
    choices: tuple[str, ...] = ()
    kind: Kind = ""
    many: bool = False
    required: bool = False

    @property
    def takes_value(self) -> bool:
        """False for an option that stands alone."""
        return bool(self.shown)


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command: the words that name it, none for `hfbench` itself, and what it takes."""

    words: tuple[str, ...]
    summary: str
    options: tuple[Taken, ...] = ()
    operands: tuple[Taken, ...] = ()
    action: bool = False
    """Whether it is an action, made from its declaration."""

    @property
    def name(self) -> str:
        """`bench generate`."""
        return " ".join(self.words)


@dataclass(frozen=True)
class Tree:
    """All commands by name; the empty name is `hfbench` itself."""

    commands: Mapping[str, Command]

    def below(self, name: str) -> dict[str, str]:
        """The next words behind a name, each with what it is for."""
        depth = len(name.split())
        told: dict[str, str] = {}
        for command in self.commands.values():
            if len(command.words) > depth and command.words[:depth] == tuple(name.split()):
                whole = len(command.words) == depth + 1
                told[command.words[depth]] = command.summary if whole else told.get(command.words[depth], "")
        return {word: summary or "commands" for word, summary in told.items()}

    def groups(self) -> list[str]:
        """Names that more words follow, `hfbench` itself first."""
        prefixes = {" ".join(each.words[:n]) for each in self.commands.values() for n in range(len(each.words))}
        return sorted(prefixes)


def command_tree() -> Tree:
    """The commands there are: actions by their declarations, housekeeping by its parsers, `hfbench` itself."""
    found = {"": _command((), front_page.parser())}
    for name, summary in front_page.COMMANDS.items():
        for command in _below((name,), import_module(f"hfbench.commands.{name}").parser(), summary):
            found[command.name] = command
    for spec in known_actions().values():
        words = tuple(spec.name.replace("_", "-").split("."))
        params = {param.name: param for param in spec.params}
        command = _command(words, parser_for(spec), spec.summary, params)
        found[command.name] = command
    return Tree(dict(sorted(found.items())))


def _below(words: tuple[str, ...], parser: argparse.ArgumentParser, summary: str) -> Iterator[Command]:
    """The command of a parser and those of its subcommands."""
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    yield _command(words, parser, summary)
    for action in verbs:
        for name, sub in action.choices.items():
            yield from _below((*words, name), sub, sub.description or "")


def _command(
    words: tuple[str, ...],
    parser: argparse.ArgumentParser,
    summary: str = "",
    params: Mapping[str, Param] | None = None,
) -> Command:
    given = params or {}
    actions = [each for each in parser._actions if not isinstance(each, argparse._SubParsersAction)]
    taken = [_taken(action, given.get(action.dest)) for action in actions if action.help != argparse.SUPPRESS]
    return Command(
        action=params is not None,
        words=words,
        summary=_sentence(summary or parser.description or ""),
        options=tuple(each for each in taken if each.names),
        operands=tuple(each for each in taken if not each.names),
    )


def _taken(action: argparse.Action, param: Param | None) -> Taken:
    alone = action.nargs == 0
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper().replace("_", "-")
    choices = (*param.choices, *filter(None, [param.opening])) if param else tuple(map(str, action.choices or ()))
    return Taken(
        names=tuple(sorted(action.option_strings, key=len)),
        shown="" if alone else metavar,
        help=_home(_sentence((action.help or "") % {**vars(action), "prog": "hfbench"})),
        choices=choices,
        kind=_kind(action, param, metavar) if not (alone or choices) else "",
        many=action.nargs in ("*", "+") or isinstance(action, argparse._AppendAction),
        required=action.required,
    )


def _kind(action: argparse.Action, param: Param | None, metavar: str) -> Kind:
    if param is not None and param.type is Path:
        return "path"
    if param is not None and param.kind in KINDS:
        return KINDS[param.kind]
    return KINDS.get(action.dest) or KINDS.get(metavar.lower(), "")


def _sentence(text: str) -> str:
    """On one line, without the stop at its end."""
    return re.sub(r"\s+", " ", text).strip().rstrip(".")


def _home(text: str) -> str:
    """The user's folder as `~`: what is printed here may be kept and passed on."""
    return text.replace(f"{Path.home()}/", "~/")
