"""What a form holds: a text for each field of an action, and what it amounts to: one job, or the cells of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from hfbench.actions.base import Action, InvalidParams, Spec
from hfbench.actions.params import Param, Problem, command_line
from hfbench.errors import UsageError
from hfbench.sweeps.vary import is_list, quoted, separates, values_of


@dataclass(frozen=True)
class FormState:
    """Texts as typed. Every question is answered by reading them through the declaration.

    A field whose text is a list or a range is an axis: with one of these, the form stands for a sweep.
    """

    spec: Spec
    texts: Mapping[str, str]
    runs: tuple[Param, ...] = ()
    """Fields of how the job runs, below those of the action."""

    @classmethod
    def of(cls, spec: Spec, values: Mapping[str, object], runs: tuple[Param, ...] = ()) -> FormState:
        """A form filled with these values, and with defaults where none is given."""
        return cls(spec, {param.name: _shown(param, values) for param in (*spec.params, *runs)}, runs)

    @property
    def params(self) -> tuple[Param, ...]:
        """All fields, in the order they are shown."""
        return (*self.spec.params, *self.runs)

    def typed(self, name: str, text: str) -> FormState:
        """The form after a field was changed."""
        return replace(self, texts={**self.texts, name: text})

    @cached_property
    def problems(self) -> dict[str, str]:
        """What is wrong, by field."""
        return {name: problem for name, problem in ((p.name, self._problem(p)) for p in self.params) if problem}

    @cached_property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The values of each field that is varied, in the order of the fields."""
        varied = (p for p in self.spec.params if not self.problems.get(p.name) and is_list(p, self.texts[p.name]))
        return {param.name: values_of(param, self.texts[param.name]) for param in varied}

    @property
    def cells(self) -> int:
        """Jobs the form stands for."""
        return prod(map(len, self.axes.values()))

    @cached_property
    def values(self) -> dict[str, object]:
        """The fields of the action that can be read and have one value."""
        return self._read(tuple(param for param in self.spec.params if param.name not in self.axes))

    @property
    def running(self) -> dict[str, object]:
        """The fields of how the job runs that can be read."""
        return self._read(self.runs)

    @property
    def request(self) -> Action | None:
        """The request the form stands for, that of the first cell of a sweep; None while something is wrong."""
        first = {name: values[0] for name, values in self.axes.items()}
        try:
            return None if self.problems else self.spec.build({**self.values, **first})
        except InvalidParams:
            return None

    @property
    def command(self) -> str:
        """The shell command that does the same."""
        if not self.axes:
            words = ["hfbench", *self.spec.name.split(".")]
            return command_line(words, self.params, {**self.values, **self.running})
        options = [word for name in self.axes for word in ("--vary", f"{name}={self.texts[name].strip()}")]
        running = dict(self.running)
        for param in self.runs:
            if param.many and running.get(param.name) != param.default:  # each of them is an option of its own
                values = running.pop(param.name, ())
                options += [word for value in param.plain(values) for word in (param.flag, str(value))]
        words = ["hfbench", "sweep", "run", *self.spec.name.split("."), *options]
        return command_line(words, self.params, {**self.values, **running})

    def told(self, param: Param) -> str:
        """How many values a field that is varied takes, and which; empty for one that is not."""
        values = self.axes.get(param.name, ())
        return f"sweep of {len(values):,}: {', '.join(map(param.text, values))}" if values else ""

    def _read(self, params: tuple[Param, ...]) -> dict[str, object]:
        return {p.name: self._parsed(p) for p in params if not self.problems.get(p.name) and self._given(p)}

    def _parsed(self, param: Param) -> object:
        """One value; where commas separate, quotation marks keep one together."""
        text = self.texts[param.name]
        if separates(param) and text.strip().startswith('"'):
            return values_of(param, text)[0]
        return param.parse(text)

    def _given(self, param: Param) -> bool:
        """An empty text stands for the default, where there is one."""
        return bool(self.texts[param.name].strip()) or param.required

    def _problem(self, param: Param) -> str:
        if not self._given(param):
            return ""
        if not self.texts[param.name].strip():
            return "is required"
        try:
            if param not in self.runs and is_list(param, self.texts[param.name]):
                values_of(param, self.texts[param.name])
            else:
                self._parsed(param)
        except UsageError as error:
            return error.found
        except Problem as problem:
            return problem.message + (f"; {problem.hint}" if problem.hint else "")
        return ""


def _shown(param: Param, values: Mapping[str, object]) -> str:
    if param.name in values:
        text = param.text(values[param.name])
        return quoted(text) if separates(param) and "," in text else text
    return "" if param.required else param.text(param.default)


def choices_of(param: Param) -> tuple[str, ...]:
    """What a field chooses from; none for one that takes anything."""
    return param.choices or (("true", "false") if param.type is bool else ())


def next_choice(param: Param, text: str) -> str | None:
    """The text with its last item turned to the next choice, round and round; None for a field without choices."""
    choices = choices_of(param)
    before, comma, item = text.rpartition(",")
    if not choices or param.opened(item.strip()):
        return None
    taken = [each.strip() for each in before.split(",")] if comma else []
    left = [each for each in choices if each not in taken] or list(choices)
    turned = left[(left.index(item.strip()) + 1) % len(left)] if item.strip() in left else left[0]
    return f"{before}{comma}{turned}"


def blank_of(item: str) -> int:
    """Where the part of a choice begins that is to be replaced, the capitals of `ssh:HOST`; 0 without any."""
    head, colon, blank = item.partition(":")
    return len(head) + 1 if colon and blank.replace(":", "").isupper() else 0
