"""Typed fields of an action: declared once, read from text, checked, and turned back into text."""

from __future__ import annotations

import dataclasses
import math
import shlex
import types
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from hfbench.errors import UsageError
from hfbench.text import did_you_mean, printable
from hfbench.units import parse_duration

TYPE_NAMES = {int: "an integer", float: "a number", str: "text", bool: "true or false", Path: "a path"}

Kind = Literal["", "model", "path", "device", "duration"]


class Problem(Exception):
    """One wrong field: its name, what is wrong with the value, and a hint."""

    def __init__(self, field: str, message: str, *, hint: str = "") -> None:
        self.field, self.message, self.hint = field, message, hint
        super().__init__(f"{printable(field)}: {message}" + (f"; {hint}" if hint else ""))


def param(
    help: str,
    *,
    default: Any = MISSING,
    choices: Sequence[str] = (),
    ge: float | None = None,
    le: float | None = None,
    unit: str = "",
    kind: Kind = "",
    positional: bool = False,
    secret: bool = False,
) -> Any:
    """A field of an action. `ge` and `le` are inclusive bounds; `kind` refines what a text stands for."""
    extra = {
        "help": help,
        "choices": tuple(choices),
        "ge": ge,
        "le": le,
        "unit": unit,
        "kind": kind,
        "positional": positional,
        "secret": secret,
    }
    return dataclasses.field(default=default, metadata=extra)


@dataclass(frozen=True, kw_only=True)
class Param:
    """One field as the front ends see it. `many` fields are tuples, written `a,b,c` on one line."""

    name: str
    type: type
    help: str
    default: Any
    optional: bool
    many: bool
    choices: tuple[str, ...]
    ge: float | None
    le: float | None
    unit: str
    kind: Kind
    positional: bool
    secret: bool

    @property
    def required(self) -> bool:
        """True when the field has no default."""
        return self.default is MISSING

    @property
    def flag(self) -> str:
        """The command line option of the field."""
        return "--" + self.name.replace("_", "-")

    @property
    def bounds(self) -> str:
        """The bounds in words, or an empty string."""
        parts = [
            f"at least {self.ge:g}" if self.ge is not None else "",
            f"at most {self.le:g}" if self.le is not None else "",
        ]
        return ", ".join(filter(None, parts))

    def parse(self, text: str) -> Any:
        """The value a person typed in a form or on a command line; Problem when it cannot be read."""
        if self.optional and text.strip().lower() in ("", "none"):
            return None
        if self.many:
            return self.validate([self._one_from_text(part.strip()) for part in text.split(",") if part.strip()])
        return self.validate(self._one_from_text(text))

    def validate(self, value: object) -> Any:
        """The value as the request holds it; Problem names what is wrong and what would be right."""
        if value is None:
            if self.optional:
                return None
            raise self._problem(f"needs {TYPE_NAMES[self.type]}, not nothing")
        if self.many:
            if not isinstance(value, (list, tuple)):
                value = [value]
            return tuple(self._one(item) for item in value)
        return self._one(value)

    def plain(self, value: Any) -> Any:
        """The value as JSON data."""
        if isinstance(value, tuple):
            return [self.plain(item) for item in value]
        return str(value) if isinstance(value, Path) else value

    def text(self, value: Any) -> str:
        """The value as a person would type it; `parse` reads it back to the same value."""
        if value is None:
            return ""
        if isinstance(value, (tuple, list)):
            return ",".join(self.text(item) for item in value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return repr(value) if isinstance(value, float) else str(value)

    def arguments(self, value: Any) -> list[str]:
        """The command line words that stand for the value."""
        if self.type is bool and not self.many:
            return [self.flag if value else self.flag.replace("--", "--no-", 1)]
        if self.positional:
            return [self.text(value)]
        return [self.flag, self.text(value)]

    def _one_from_text(self, text: str) -> object:
        if self.type is bool:
            words = {
                "true": True,
                "yes": True,
                "on": True,
                "1": True,
                "false": False,
                "no": False,
                "off": False,
                "0": False,
            }
            if text.strip().lower() not in words:
                raise self._problem(f"{text!r} is not true or false")
            return words[text.strip().lower()]
        if self.kind == "duration" or self.type in (str, Path):
            return text
        try:
            return int(text) if self.type is int else float(text)
        except ValueError:
            raise self._problem(f"{printable(text)!r} is not {TYPE_NAMES[self.type]}") from None

    def _one(self, value: object) -> Any:
        if self.kind == "duration" and isinstance(value, (str, int, float)) and not isinstance(value, bool):
            try:
                value = parse_duration(value)
            except UsageError as error:
                raise self._problem(str(error)) from None
        if self.type is float and type(value) is int:
            value = float(value)
        if self.type is Path and isinstance(value, str):
            value = Path(value)
        if not isinstance(value, self.type) or (isinstance(value, bool) and self.type is not bool):
            raise self._problem(f"{_shown(value)} is not {TYPE_NAMES[self.type]}")
        if isinstance(value, str) and "\0" in value:
            raise self._problem("holds a NUL character")
        self._check_bounds(value)
        if self.choices and value not in self.choices:
            listed = ", ".join(self.choices)
            raise self._problem(f"{_shown(value)} is not one of {listed}", did_you_mean(str(value), self.choices))
        return value

    def _check_bounds(self, value: Any) -> None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return
        if isinstance(value, float) and not math.isfinite(value):
            raise self._problem(f"{value} is not a finite number")
        if self.ge is not None and value < self.ge:
            raise self._problem(f"{value:g} is below the least value {self.ge:g}")
        if self.le is not None and value > self.le:
            raise self._problem(f"{value:g} is above the greatest value {self.le:g}")

    def _problem(self, message: str, hint: str = "") -> Problem:
        return Problem(self.name, message, hint=hint)


def param_of(field: dataclasses.Field[Any], hint: Any) -> Param:
    """Read one dataclass field; TypeError when its annotation is not one a front end can ask for."""
    kind, optional, many, choices = _read_hint(hint)
    told = dict(field.metadata)
    if not told.get("help"):
        raise TypeError(f"field {field.name!r}: declare it with param(help, ...)")
    told["choices"] = told["choices"] or choices
    if kind not in TYPE_NAMES:
        raise TypeError(
            f"field {field.name!r}: type {hint!r} is not one of {', '.join(t.__name__ for t in TYPE_NAMES)}"
        )
    return Param(name=field.name, type=kind, default=field.default, optional=optional, many=many, **told)


def command_line(program: Sequence[str], params: Sequence[Param], values: dict[str, Any]) -> str:
    """The shell command that stands for a request: positional fields, then what differs from the defaults."""
    words = list(program)
    for each in sorted(params, key=lambda p: not p.positional):
        if each.name in values and not each.secret and (each.required or values[each.name] != each.default):
            words += each.arguments(values[each.name])
    return shlex.join(words)


def _read_hint(hint: Any) -> tuple[Any, bool, bool, tuple[str, ...]]:
    """(scalar type, may be None, is a tuple, choices) of an annotation."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [arm for arm in get_args(hint) if arm is not type(None)]
        if len(inner) == 1:
            kind, _, many, choices = _read_hint(inner[0])
            return kind, True, many, choices
    if get_origin(hint) is tuple and get_args(hint)[1:] == (Ellipsis,):
        kind, _, _, choices = _read_hint(get_args(hint)[0])
        return kind, False, True, choices
    if get_origin(hint) is Literal:
        return str, False, False, tuple(get_args(hint))
    return hint, False, False, ()


def _shown(value: object) -> str:
    text = printable(repr(value))
    return text if len(text) <= 60 else text[:57] + "..."
