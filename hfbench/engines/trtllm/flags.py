"""The flags of trtllm-build and of the programs before it: tables of data, and what is wrong with a value."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from hfbench.models.problem import quoted
from hfbench.text import did_you_mean

Kind = Literal["integer", "number", "text", "path", "switch"]
Value = str | int | float | bool
SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
KINDS = {"integer": "a whole number", "number": "a number", "text": "text", "path": "a path", "switch": "true or false"}

NAMED_ELSEWHERE = {
    "max_batch_size": "--batch",
    "max_input_len": "--max-prompt",
    "max_seq_len": "--context",
    "checkpoint_dir": "the model",
    "output_dir": "--out",
}
"""Flags that hfbench sets from options of its own: told twice, they could differ from the manifest."""


class FlagFault(ValueError):
    """What is wrong with one flag: `str()` is the sentence, `flag` the word that was given."""

    def __init__(self, flag: str, found: str, remedy: str = "") -> None:
        self.flag, self.found, self.remedy = flag, found, remedy
        super().__init__(f"{found}: {remedy}" if remedy else found)


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One flag. `least` and `most` are inclusive; `many` takes several values, parted by spaces."""

    name: str
    type: Kind
    choices: tuple[str, ...] = ()
    default: Value | None = None
    default_unverified: bool = False
    least: float | None = None
    most: float | None = None
    many: bool = False
    aliases: tuple[str, ...] = ()
    group: str = ""

    def read(self, value: object) -> Value:
        """A value out of a file or off a command line as the flag takes it; FlagFault says what is wrong with it."""
        read = self._of_kind(value)
        if self.choices:
            for word in str(read).split() if self.many else [str(read)]:
                if word not in self.choices:
                    near = did_you_mean(word, self.choices)
                    listed = ", ".join(self.choices)
                    raise FlagFault(self.name, f"{self.name} takes {listed}, not {quoted(word)}", near)
        if isinstance(read, (int, float)) and not isinstance(read, bool):
            if self.least is not None and read < self.least:
                raise FlagFault(self.name, f"{self.name} is {read}, below the least value {self.least:g}")
            if self.most is not None and read > self.most:
                raise FlagFault(self.name, f"{self.name} is {read}, above the greatest value {self.most:g}")
        return read

    def argv(self, value: Value) -> list[str]:
        """The words of the command that set the flag; none for a switch that is off."""
        if self.type == "switch":
            return [f"--{self.name}"] if value else []
        return [f"--{self.name}", *(str(value).split() if self.many else [_spelled(value)])]

    def _of_kind(self, value: object) -> Value:
        if self.type == "switch":
            read = SWITCH.get(value.strip().lower()) if isinstance(value, str) else value
            if isinstance(read, bool):
                return read
        elif self.type == "integer":
            if type(value) is int:
                return value
            if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 20:
                return int(value)
        elif self.type == "number":
            number = _number(value)
            if number is not None:
                return number
        elif isinstance(value, str) and value.strip() and "\0" not in value:
            return value
        raise FlagFault(self.name, f"{self.name} needs {KINDS[self.type]}, not {_shown(value)}")


@dataclass(frozen=True, kw_only=True)
class Gone:
    """A flag that older releases took. `seen` is False where its fate is from memory."""

    name: str
    fate: str
    since: str = ""
    instead: str = ""
    seen: bool = False

    @property
    def sentence(self) -> str:
        """What became of it, since when, and how sure that is."""
        since = f" since {self.since}" if self.since else ""
        return f"{self.name} is obsolete{since}: {self.fate}{'' if self.seen else ' (from memory)'}"

    @property
    def remedy(self) -> str:
        """What to give instead."""
        return f"give {NAMED_ELSEWHERE.get(self.instead, self.instead)}" if self.instead else "leave it away"


@dataclass(frozen=True, kw_only=True)
class FlagTable:
    """The flags of one program, with the releases it holds for."""

    program: str
    flags: Mapping[str, Flag]
    gone: Mapping[str, Gone]
    elsewhere: Mapping[str, str]
    first: str = ""
    last: str = ""

    def find(self, word: str) -> Flag:
        """The flag that a word means, with or without dashes; FlagFault explains obsolete and unknown ones."""
        name = word.strip().removeprefix("--").replace("-", "_")
        if name in self.flags:
            return self.flags[name]
        by_alias = next((flag for flag in self.flags.values() if name in flag.aliases), None)
        if by_alias is not None:
            return by_alias
        if gone := self.gone.get(name):
            raise FlagFault(name, gone.sentence, gone.remedy)
        if name in self.elsewhere:
            raise FlagFault(name, f"{self.program} has no flag {name}", self.elsewhere[name])
        near = did_you_mean(name, [*self.flags, *self.gone])
        raise FlagFault(name, f"{self.program} has no flag {quoted(name)}", near)

    def read(self, word: str, value: object) -> tuple[Flag, Value]:
        """The flag and its value; FlagFault for what the program would refuse, or silently misread."""
        flag = self.find(word)
        return flag, flag.read(value)


@lru_cache(maxsize=1)
def build_flags() -> FlagTable:
    """The flags of trtllm-build."""
    told = _read("flags")
    return FlagTable(
        program="trtllm-build",
        flags=_flags(told["flag"]),
        gone={name: Gone(name=name, **row) for name, row in told["gone"].items()},
        elsewhere=told["elsewhere"],
        first=told["first"],
        last=told["last"],
    )


@lru_cache(maxsize=1)
def tool_flags() -> dict[str, FlagTable]:
    """The flags of the programs that convert a checkpoint, by the name of the program."""
    build = build_flags()
    return {
        name: FlagTable(program=name, flags=_flags(row["flag"]), gone={}, elsewhere=_built(build))
        for name, row in conversion()["tools"].items()
    }


@lru_cache(maxsize=1)
def conversion() -> dict[str, Any]:
    """What is known of the programs that convert a checkpoint, as the file has it."""
    return _read("convert")


def _built(build: FlagTable) -> dict[str, str]:
    """Flags of trtllm-build given to a conversion."""
    return {name: f"it is a flag of trtllm-build: give it without `convert.`: {name}" for name in build.flags}


def _flags(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Flag]:
    return {
        name: Flag(
            name=name,
            **{**row, "choices": tuple(row.get("choices", ())), "aliases": tuple(row.get("aliases", ()))},
        )
        for name, row in rows.items()
    }


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("hfbench.engines.trtllm") / "data" / f"{name}.toml").read_text("utf-8"))


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _spelled(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a table"
    return str(value).lower() if isinstance(value, bool) else "a huge number" if _huge(value) else str(value)


def _huge(value: object) -> bool:
    return isinstance(value, int) and abs(value) >= 2**64
