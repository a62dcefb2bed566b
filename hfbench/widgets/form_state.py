"""What a form holds: a text for each field of an action, and what it amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hfbench.actions.base import Action, InvalidParams, Spec
from hfbench.actions.params import Param, Problem, command_line


@dataclass(frozen=True)
class FormState:
    """Texts as typed. Every question is answered by reading them through the declaration."""

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

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong, by field."""
        return {name: problem for name, problem in ((p.name, self._problem(p)) for p in self.params) if problem}

    @property
    def values(self) -> dict[str, object]:
        """The fields of the action that can be read."""
        return self._read(self.spec.params)

    @property
    def running(self) -> dict[str, object]:
        """The fields of how the job runs that can be read."""
        return self._read(self.runs)

    @property
    def request(self) -> Action | None:
        """The request the form stands for; None while something is wrong."""
        try:
            return None if self.problems else self.spec.build(self.values)
        except InvalidParams:
            return None

    @property
    def command(self) -> str:
        """The shell command that does the same."""
        return command_line(["hfbench", *self.spec.name.split(".")], self.params, {**self.values, **self.running})

    def _read(self, params: tuple[Param, ...]) -> dict[str, object]:
        return {p.name: p.parse(self.texts[p.name]) for p in params if not self._problem(p) and self._given(p)}

    def _given(self, param: Param) -> bool:
        """An empty text stands for the default, where there is one."""
        return bool(self.texts[param.name].strip()) or param.required

    def _problem(self, param: Param) -> str:
        if not self._given(param):
            return ""
        if not self.texts[param.name].strip():
            return "is required"
        try:
            param.parse(self.texts[param.name])
        except Problem as problem:
            return problem.message + (f"; {problem.hint}" if problem.hint else "")
        return ""


def _shown(param: Param, values: Mapping[str, object]) -> str:
    if param.name in values:
        return param.text(values[param.name])
    return "" if param.required else param.text(param.default)


def next_choice(param: Param, text: str) -> str | None:
    """The choice after the one typed, round and round; None for a field without choices."""
    choices = param.choices or (("true", "false") if param.type is bool else ())
    if not choices or param.opened(text):
        return None
    return choices[(choices.index(text) + 1) % len(choices)] if text in choices else choices[0]
