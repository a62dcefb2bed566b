"""Typed fields of an action: declared once, read from text, checked, and turned back into text."""

from __future__ import annotations

import dataclasses
import math
import re
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
BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
RESERVED = frozenset(
    {
        *("json", "wait", "detach", "timeout", "label", "no_lease", "in", "runs_in", "help"),
        *("save_as", "on_fail", "expect", "fails"),
    }
)
"""Words of the command line and of script steps, which no field may take."""

_ZERO = re.compile(r"0+(?:\.0+)?\s*(?:s|m|h|d)?")
_ITEM = re.compile(r'((?:^|,)\s*("(?:[^"]|"")*"|[^",]*)\s*)')

Kind = Literal["", "model", "path", "device", "duration", "baseline", "theme"]


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
    opening: str = "",
    ge: float | None = None,
    le: float | None = None,
    unit: str = "",
    kind: Kind = "",
    positional: bool = False,
    secret: bool = False,
) -> Any:
    """A field of an action. `ge` and `le` are inclusive bounds; `kind` refines what a text stands for.

    Beside the `choices` any text is taken that begins with `opening` and goes on: `engine:` and a path.
    """
    extra = {
        "help": help,
        "choices": tuple(choices),
        "opening": opening,
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
    opening: str = ""
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
    def listed(self) -> tuple[str, ...]:
        """The choices as people read them, with what stands for all texts of the opening."""
        return (*self.choices, f"{self.opening}PATH") if self.opening else self.choices

    def opened(self, value: object) -> bool:
        """Whether a value is a text that begins with the opening and goes on."""
        return bool(self.opening) and str(value).startswith(self.opening) and len(str(value)) > len(self.opening)

    @property
    def bounds(self) -> str:
        """The bounds in words, or an empty string."""
        parts = [
            f"at least {_number(self.ge)}" if self.ge is not None else "",
            f"at most {_number(self.le)}" if self.le is not None else "",
        ]
        return ", ".join(filter(None, parts))

    def parse(self, text: str) -> Any:
        """The value a person typed in a form or on a command line; Problem when it cannot be read."""
        if self.optional and (not text.strip() or (not self._textual and text.strip().lower() == "none")):
            return None
        if self.many:
            return self.validate([self._one_from_text(part) for part in self.split(text)])
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
            checked = tuple(self._one(item) for item in value)
            return checked or (None if self.optional else ())
        if self.optional and isinstance(value, str) and not value.strip():
            return None
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
            return ",".join(_quoted(self.text(item)) for item in value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return f"{value:g}" if float(f"{value:g}") == value else repr(value)
        return str(value)

    def arguments(self, value: Any) -> list[str]:
        """The command line words that stand for the value."""
        if self.type is bool and not self.many:
            return [self.flag if value else self.flag.replace("--", "--no-", 1)]
        text = self.text(value)
        if self.positional:
            return [text]
        return [f"{self.flag}={text}"] if text.startswith("-") else [self.flag, text]

    @property
    def _textual(self) -> bool:
        """True when any word may be a value, `none` as well."""
        return self.type in (str, Path) and (not self.choices or "none" in self.choices)

    def split(self, text: str) -> list[str]:
        """The items of `a, b, "c, d"`; Problem for a quotation mark in the wrong place."""
        parts = _ITEM.findall(text) if text.strip() else []
        if "".join(whole for whole, _ in parts) != (text if parts else ""):
            raise self._problem(f"{_shown(text)} has a quotation mark in the wrong place")
        return [item[1:-1].replace('""', '"') if item.startswith('"') else item.strip() for _, item in parts]

    def _one_from_text(self, text: str) -> object:
        if self.type is bool:
            if text.strip().lower() not in BOOLEANS:
                raise self._problem(f"{_shown(text)} is not true or false")
            return BOOLEANS[text.strip().lower()]
        if self.kind == "duration" or self.type in (str, Path):
            return text
        try:
            return int(text) if self.type is int else float(text)
        except ValueError:
            raise self._problem(f"{_shown(text)} is not {TYPE_NAMES[self.type]}") from None

    def _one(self, value: object) -> Any:
        if self.kind == "duration" and isinstance(value, (str, int, float)) and not isinstance(value, bool):
            try:
                value = 0.0 if self.ge == 0 and _ZERO.fullmatch(str(value).strip()) else parse_duration(value)
            except UsageError as error:
                raise self._problem(str(error)) from None
        if self.type is float and type(value) is int:
            try:
                value = float(value)
            except OverflowError:
                raise self._problem(f"{_shown(value)} is too large") from None
        if self.type is Path and isinstance(value, str):
            value = Path(value)
        if not isinstance(value, self.type) or (isinstance(value, bool) and self.type is not bool):
            raise self._problem(f"{_shown(value)} is not {TYPE_NAMES[self.type]}")
        if isinstance(value, (str, Path)) and "\0" in str(value):
            raise self._problem("holds a NUL character")
        self._check_bounds(value)
        if self.choices and value not in self.choices and not self.opened(value):
            near = did_you_mean(str(value), self.choices)
            raise self._problem(f"{_shown(value)} is not one of {', '.join(filter(None, self.listed))}", near)
        return value

    def _check_bounds(self, value: Any) -> None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return
        if isinstance(value, float) and not math.isfinite(value):
            raise self._problem(f"{value} is not a finite number")
        if self.ge is not None and value < self.ge:
            raise self._problem(f"{_number(value)} is below the least value {_number(self.ge)}")
        if self.le is not None and value > self.le:
            raise self._problem(f"{_number(value)} is above the greatest value {_number(self.le)}")

    def _problem(self, message: str, hint: str = "") -> Problem:
        return Problem(self.name, message, hint=hint)


def param_of(field: dataclasses.Field[Any], hint: Any) -> Param:
    """Read one dataclass field; TypeError when its annotation is not one a front end can ask for."""
    kind, optional, many, choices = _read_hint(hint)
    told = dict(field.metadata)
    if not told.get("help"):
        raise TypeError(f"field {field.name!r}: declare it with param(help, ...)")
    if field.name in RESERVED:
        raise TypeError(f"field {field.name!r}: every action has an option of that name already")
    told["choices"] = told["choices"] or choices
    if kind not in TYPE_NAMES:
        raise TypeError(
            f"field {field.name!r}: type {hint!r} is not one of {', '.join(t.__name__ for t in TYPE_NAMES)}"
        )
    found = Param(name=field.name, type=kind, default=field.default, optional=optional, many=many, **told)
    if not found.required:
        try:
            found.validate(found.default)
        except Problem as problem:
            raise TypeError(f"the default of {problem}") from None
    return found


def command_line(program: Sequence[str], params: Sequence[Param], values: dict[str, Any]) -> str:
    """The shell command that stands for a request: positional fields, then what differs from the defaults."""
    named: list[str] = []
    options: list[str] = []
    for each in params:
        if each.name not in values or each.secret:
            continue
        value = values[each.name]
        if each.required or each.plain(value) != each.plain(each.default):  # a list from JSON is a tuple here
            (named if each.positional else options).extend(each.arguments(value))
    if any(word.startswith("-") for word in named):  # a file that is called like an option
        return shlex.join([*program, *options, "--", *named])
    return shlex.join([*program, *named, *options])


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


def _quoted(item: str) -> str:
    """An item of a list, in quotation marks when it could be read otherwise."""
    plain = item == item.strip() != "" and not set(item) & set(',"\n')
    return item if plain else '"' + item.replace('"', '""') + '"'


def _number(value: object) -> str:
    """A bound or a value without an exponent where it is whole."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return _shown(value)


def _shown(value: object) -> str:
    """A value in a sentence: on one line, safe, and not longer than it helps."""
    try:
        text = printable(repr(value))
    except ValueError:  # Python refuses to spell integers of more than 4300 digits
        text = "the integer"
    return text if len(text) <= 60 else text[:57] + "..."
