"""The declaration of an action: one frozen dataclass that every front end reads."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_type_hints

from hfbench.actions.params import Param, Problem, param_of
from hfbench.errors import MissingError, UsageError
from hfbench.text import did_you_mean

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?")
"""Names of actions: `demo`, `bench.generate`."""


class Action(Protocol):
    """A request that can be performed; an instance is one job's parameters."""

    def perform(self, run: Run) -> Any:
        """Do the work and return an instance of the declared result class."""


class InvalidParams(UsageError):
    """One or more fields of a request are wrong; `problems` names each."""

    def __init__(self, action: str, problems: list[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in problems), where=action)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What the front ends know of an action. Made by `@action`, never by hand."""

    name: str
    summary: str
    cls: type
    declared_result: type | str
    params: tuple[Param, ...]
    inline: bool
    """Performed in the calling process: reading that takes milliseconds and leaves no job."""
    lease: str | None
    """The field that names the device to hold while the action runs."""
    needs_gpu: bool
    """Whether its device `auto` is a GPU or nothing: on the CPU it runs only when that is asked for."""
    needs: tuple[str, ...]
    """Modules the worker must be able to import."""
    extra: str
    """The extra of hfbench that installs them."""
    file: Path
    measures: bool
    """Whether the headline of its result is a figure of the machine, such as a latency, and not a finding."""

    @property
    def result(self) -> type:
        """The class of the result, imported now when the declaration only names it."""
        if isinstance(self.declared_result, type):
            return self.declared_result
        module, _, name = self.declared_result.partition(":")
        found: type = getattr(importlib.import_module(module), name)
        return found

    def param(self, name: str) -> Param:
        """The declared field of that name; KeyError when there is none."""
        return {param.name: param for param in self.params}[name]

    def build(self, values: Mapping[str, object]) -> Action:
        """A request from plain values of a script, a form or JSON; InvalidParams lists every wrong field."""
        known = {param.name: param for param in self.params}
        problems: list[Problem] = []
        checked: dict[str, object] = {}
        for name, value in values.items():
            if name not in known:
                problems.append(Problem(name, f"unknown field {name!r}", hint=did_you_mean(name, known)))
                continue
            try:
                checked[name] = known[name].validate(value)
            except Problem as problem:
                problems.append(problem)
        problems += [Problem(p.name, "is required") for p in self.params if p.required and p.name not in values]
        if problems:
            raise InvalidParams(self.name, problems)
        request: Action = self.cls(**checked)
        return request

    def values(self, request: object) -> dict[str, Any]:
        """The fields of a request as JSON data, defaults included."""
        return {param.name: param.plain(getattr(request, param.name)) for param in self.params}

    def needing(self, values: Mapping[str, object]) -> Spec:
        """The declaration with what a request of these values needs, where the class tells that by `needs_for`."""
        tell = getattr(self.cls, "needs_for", None)
        if tell is None:
            return self
        needs, extra = tell(values)
        return dataclasses.replace(self, needs=needs, extra=extra)

    def missing(self) -> list[str]:
        """Modules this interpreter lacks; looks them up without importing them."""
        return [name for name in self.needs if not _installed(name)]

    def require(self) -> None:
        """MissingError when a needed module is not installed."""
        if lacking := self.missing():
            install = f"install it with: pip install 'hfbench[{self.extra}]'" if self.extra else "install it"
            raise MissingError(f"needs {', '.join(lacking)}, which this Python lacks", where=self.name, remedy=install)


C = TypeVar("C", bound=type)


def action(
    name: str,
    *,
    result: type | str,
    inline: bool = False,
    lease: str | None = None,
    needs_gpu: bool = False,
    needs: tuple[str, ...] = (),
    extra: str = "",
    measures: bool = False,
) -> Callable[[C], C]:
    """Declare a frozen keyword-only dataclass with a `perform` method to be an action.

    `result` is its result's class, or `"module:Class"` where importing that would slow down `--help`; `measures` says
    that its headline is a figure of the machine.
    Refuses other classes at import, so that a mistake is found before anything runs.
    """

    def declare(cls: C) -> C:
        options = getattr(cls, "__dataclass_params__", None)
        if options is None or not options.frozen or not all(field.kw_only for field in dataclasses.fields(cls)):
            raise TypeError(f"{cls.__qualname__}: an action is a @dataclass(frozen=True, kw_only=True)")
        if not NAME.fullmatch(name):
            raise TypeError(f"{cls.__qualname__}: the name {name!r} is not of the form group.verb in small letters")
        if not callable(getattr(cls, "perform", None)):
            raise TypeError(f"{cls.__qualname__}: an action needs a perform(self, run) method")
        if not cls.__doc__ or cls.__doc__.startswith(f"{cls.__name__}("):  # what dataclass writes where none is
            raise TypeError(f"{cls.__qualname__}: the first line of the docstring is the summary")
        hints = get_type_hints(cls)
        params = tuple(param_of(field, hints[field.name]) for field in dataclasses.fields(cls))
        if lease is not None and lease not in {param.name for param in params}:
            raise TypeError(f"{cls.__qualname__}: lease names the field {lease!r}, which is not declared")
        spec = Spec(
            name=name,
            summary=cls.__doc__.strip().splitlines()[0].rstrip("."),
            cls=cls,
            declared_result=result,
            params=params,
            inline=inline,
            lease=lease,
            needs_gpu=needs_gpu,
            needs=needs,
            extra=extra,
            measures=measures,
            file=Path(getattr(sys.modules[cls.__module__], "__file__", None) or cls.__module__),
        )
        setattr(cls, "spec", spec)  # noqa: B010 - a class of the caller's, unknown to the type checker
        return cls

    return declare


def spec_of(request: object) -> Spec:
    """The declaration a request belongs to."""
    spec: Spec = type(request).spec  # type: ignore[attr-defined]
    return spec


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # its parent is not there, or not a package
        return False


__all__ = ["MISSING", "Action", "InvalidParams", "Spec", "action", "spec_of"]
