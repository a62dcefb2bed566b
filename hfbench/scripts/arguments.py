"""Checks the arguments of one step against its action's declaration, each at its own place."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hfbench.actions.base import Action, Spec
from hfbench.actions.params import Param, Problem
from hfbench.config import HERE, ExecutorConfig
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.executors.spec import parse_on
from hfbench.scripts.errors import Code, Problems
from hfbench.scripts.parse import RESERVED, Step, scalars_of
from hfbench.scripts.tree import Entry, Listing, Plain, Scalar, Table, Value, described
from hfbench.scripts.variables import Broken, Environment
from hfbench.units import parse_duration

BROKEN = object()
"""Stands in a key for a value that could not be filled in."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Argument:
    """An argument whose name the action knows."""

    param: Param
    entry: Entry


def find_action(step: Step, actions: Mapping[str, Spec], problems: Problems) -> Spec | None:
    """The declaration of the step's action; the nearest is offered for an unknown one."""
    name = step.action.text
    if name in actions:
        return actions[name]
    hint = problems.near(name, actions) or "hfbench actions lists them"
    problems.add(Code.UNKNOWN_ACTION, step.action.span, f"unknown action {name!r}", hint)
    return None


def known_arguments(step: Step, spec: Spec, problems: Problems) -> tuple[Argument, ...]:
    """The arguments the action declares; unknown, missing and nested ones are complained about."""
    params = {param.name: param for param in spec.params}
    found = []
    for entry in step.arguments:
        name = entry.key.text
        if name not in params:
            hint = problems.near(name, (*params, *RESERVED)) or f"known: {', '.join(params) or 'none'}"
            problems.add(Code.UNKNOWN_ARGUMENT, entry.key.span, f"{spec.name}: unknown argument {name!r}", hint)
        elif isinstance(entry.value, Table) or len(scalars_of(entry.value)) != _length(entry.value):
            message = f"{spec.name}.{name}: a value or a list of values is expected, not {described(entry.value)}"
            problems.add(Code.WRONG_TYPE, entry.value.span, message)
        else:
            found.append(Argument(param=params[name], entry=entry))
    given = {entry.key.text for entry in step.arguments}
    for param in spec.params:
        if param.required and param.name not in given:
            message = f"{spec.name}: the argument {param.name!r} is missing"
            problems.add(Code.MISSING_ARGUMENT, step.action.span, message, f"it is: {param.help}")
    return tuple(found)


class RequestBuilder:
    """Builds the requests of one step, cell by cell; equal values share one request."""

    def __init__(self, step: Step, spec: Spec, arguments: tuple[Argument, ...], problems: Problems) -> None:
        self.step, self.spec, self.arguments, self.problems = step, spec, arguments, problems
        self._built: dict[tuple[str, ...], Action | None] = {}

    def build(self, environment: Environment, label: str) -> Action | None:
        """The request in one cell; None when a value is wrong, which is told with the first cell it is wrong in."""
        values: dict[Argument, Value] = {}
        for argument in self.arguments:
            with contextlib.suppress(Broken):  # told already; the other arguments are checked all the same
                values[argument] = _value(argument.entry, environment)
        key = tuple(repr(values.get(argument, BROKEN)) for argument in self.arguments)
        if key not in self._built:
            self._built[key] = self._validated(values, f" (cell {label})" if label else "")
        return self._built[key]

    def _validated(self, values: Mapping[Argument, Value], cell: str) -> Action | None:
        checked, sound = {}, len(values) == len(self.arguments)
        for argument, value in values.items():
            try:
                checked[argument.param.name] = argument.param.validate(value)
            except Problem as problem:
                sound = False
                self._complain(argument, problem, cell)
        if not sound or any(param.required and param.name not in checked for param in self.spec.params):
            return None
        try:
            return self.spec.build(checked)
        except HfbenchError as error:  # fields that are right alone and wrong together
            self.problems.add(
                Code.BAD_VALUE,
                self.step.action.span,
                f"{self.spec.name}: {error.found}",
                error.remedy,
                note=cell if any(_is_filled(argument) for argument in self.arguments) else "",
            )
            return None

    def _complain(self, argument: Argument, problem: Problem, cell: str) -> None:
        node, param = argument.entry.value, argument.param
        message = "the value is wrong, and secret" if param.secret else problem.message
        hint = "" if param.secret else problem.hint
        note = cell if _is_filled(argument) else ""
        self.problems.add(Code.BAD_VALUE, node.span, f"{self.spec.name}.{param.name}: {message}", hint, note=note)


def timeout_of(step: Step, environment: Environment, problems: Problems) -> float | None:
    """The seconds a step may take; None without a limit or when the limit is wrong."""
    if step.timeout is None:
        return None
    try:
        value = environment.value(step.timeout)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return parse_duration(value)
        problems.add(
            Code.BAD_TIMEOUT, step.timeout.span, f"{step.timeout.text!r} is not a duration", "write for example 30s"
        )
    except UsageError as error:
        problems.add(Code.BAD_TIMEOUT, step.timeout.span, error.found, error.remedy)
    except Broken:
        pass
    return None


def environment_of(step: Step, spec: Spec, known: Collection[str], environment: Environment, problems: Problems) -> str:
    """The environment a step's job runs in; empty without one or when it is wrong."""
    if (scalar := step.runs_in) is None:
        return ""
    try:
        name = environment.value(scalar)
    except Broken:
        return ""
    if not isinstance(name, str) or not name:
        problems.add(Code.BAD_ENVIRONMENT, scalar.span, f"{scalar.text!r} is not the name of an environment")
    elif spec.inline:
        message = f"{spec.name} runs in the process of the script: `in` is for actions that run as jobs"
        problems.add(Code.BAD_ENVIRONMENT, scalar.span, message, "remove it")
    elif "/" not in name and name not in (HERE, *known):
        hint = problems.near(name, (HERE, *known)) or f"known: {', '.join((HERE, *known))}"
        problems.add(Code.BAD_ENVIRONMENT, scalar.span, f"no environment is called {name!r}", hint)
    else:
        return name
    return ""


def place_of(
    step: Step, spec: Spec, named: Mapping[str, ExecutorConfig], environment: Environment, problems: Problems
) -> str:
    """Where a step's job runs, as `--on` takes it; empty without one or when it is wrong."""
    if (scalar := step.on) is None:
        return ""
    try:
        text = environment.value(scalar)
        where = parse_on(text if isinstance(text, str) and text else scalar.text, named)
        if spec.inline and not where.is_local:
            message = f"{spec.name} runs in the process of the script: `on` is for actions that run as jobs"
            problems.add(Code.BAD_PLACE, scalar.span, message, "remove it")
            return ""
        return where.text
    except Broken:
        pass
    except UsageError as error:
        problems.add(Code.BAD_PLACE, scalar.span, error.found, error.remedy)
    return ""


def _is_filled(argument: Argument) -> bool:
    """True when the value depends on variables, and so on the cell."""
    return any("{{" in scalar.text for scalar in scalars_of(argument.entry.value))


def _value(entry: Entry, environment: Environment) -> Value:
    if isinstance(entry.value, Scalar):
        return environment.value(entry.value)
    items: list[Plain] = []
    for scalar in scalars_of(entry.value):
        value = environment.value(scalar)
        items += value if isinstance(value, list) else [value]
    return items


def _length(node: Scalar | Listing) -> int:
    return len(node.items) if isinstance(node, Listing) else 1
