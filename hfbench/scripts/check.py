"""Turns the bytes of a script into a plan, or into everything that is wrong with it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfbench.actions.base import Spec
from hfbench.config import ExecutorConfig
from hfbench.scripts.arguments import (
    RequestBuilder,
    environment_of,
    find_action,
    known_arguments,
    place_of,
    timeout_of,
)
from hfbench.scripts.errors import Code, Problems, ScriptError
from hfbench.scripts.expand import expand
from hfbench.scripts.expectation import EXAMPLE, BadExpectation, Expectation, mismatch, parse_expectation
from hfbench.scripts.lookup import NotThere, check_path
from hfbench.scripts.parse import Script, Step, parse, scalars_of
from hfbench.scripts.plan import Cell, Fails, Plan, PlannedStep, label_of
from hfbench.scripts.read import read_tree
from hfbench.scripts.templates import plain_text
from hfbench.scripts.tree import Scalar
from hfbench.scripts.variables import Broken, Budget, Environment, check_variables


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What came of a script: a plan, or errors; warnings either way."""

    plan: Plan | None
    errors: tuple[ScriptError, ...]
    warnings: tuple[ScriptError, ...]


@dataclass(frozen=True, kw_only=True)
class Known:
    """Names that a script may use and a configuration declares: environments for `in`, executors for `on`."""

    environments: Collection[str] = ()
    executors: Mapping[str, ExecutorConfig] = field(default_factory=dict)


def check(source: bytes, file: Path, actions: Mapping[str, Spec], known: Known | None = None) -> Checked:
    """Check a script whole: text, shape, names, and every value of every cell. Nothing is run and nothing is read
    but `source`."""
    known = known or Known()
    problems = Problems()
    script = parse(read_tree(source, problems), problems)
    variables = check_variables(script, _texts(script), problems)
    saved = _saved(script, actions, problems)
    steps = [_CheckedStep(step, number, actions, known, saved, problems) for number, step in enumerate(script.steps, 1)]
    cells: list[Cell] = []
    budget = Budget()
    for axes in expand(script, problems):
        environment = Environment(variables, axes, budget, problems)
        label = label_of(environment.cell)
        planned = [step.plan(environment, label) for step in steps]
        cells.append(Cell(values=environment.cell, steps=tuple(filter(None, planned))))
        if budget.left < 0:
            break
    errors = problems.listed()
    plan = None
    if not errors:
        assert all(len(cell.steps) == len(script.steps) for cell in cells), "what cannot be planned has an error"
        name = script.name or file.name.removesuffix(".yaml").removesuffix(".hfb")
        plan = Plan(file=file, name=name, sha256=hashlib.sha256(source).hexdigest(), cells=tuple(cells))
    return Checked(plan=plan, errors=errors, warnings=variables.unused)


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A name given by `save_as`: the step that gives it and the class of what it holds."""

    number: int
    line: int
    result: Any


class _CheckedStep:
    """A step beside the declaration of its action and the names that the script's steps save."""

    def __init__(
        self,
        step: Step,
        number: int,
        actions: Mapping[str, Spec],
        known: Known,
        saved: Mapping[str, Saved],
        problems: Problems,
    ) -> None:
        self.step, self.problems, self.known = step, problems, known
        self.spec = find_action(step, actions, problems)
        self.number = number
        self.saved = saved
        self._expectations: dict[tuple[Scalar, str], Expectation | None] = {}
        if self.spec is not None:
            arguments = known_arguments(step, self.spec, problems)
            self._builder = RequestBuilder(step, self.spec, arguments, problems)

    def plan(self, environment: Environment, label: str) -> PlannedStep | None:
        """The step in one cell; None when something about it is wrong."""
        timeout = timeout_of(self.step, environment, self.problems)
        expectations = [self._expectation(scalar, environment) for scalar in self.step.expect]
        fails = self._fails(environment)
        request = self._builder.build(environment, label) if self.spec is not None else None
        if self.spec is None:
            return None
        runs_in = environment_of(self.step, self.spec, self.known.environments, environment, self.problems)
        on = place_of(self.step, self.spec, self.known.executors, environment, self.problems)
        if request is None:
            return None
        return PlannedStep(
            number=self.number,
            line=self.step.action.span.line,
            spec=self.spec,
            request=request,
            timeout=timeout,
            runs_in=runs_in,
            on=on,
            save_as=self.step.save_as.text if self.step.save_as else "",
            expectations=tuple(filter(None, expectations)),
            fails=fails,
            on_fail=self.step.on_fail,
        )

    def _fails(self, environment: Environment) -> Fails | None:
        if (scalar := self.step.fails) is None:
            return None
        try:
            value = environment.value(scalar)
        except Broken:
            return None
        words = "" if value is True or isinstance(value, list) else plain_text(value).strip()
        return Fails(line=scalar.span.line, words=words)

    def _expectation(self, scalar: Scalar, environment: Environment) -> Expectation | None:
        try:
            value = environment.value(scalar)
        except Broken:
            return None
        text = "" if isinstance(value, list) else plain_text(value)
        if (scalar, text) not in self._expectations:
            self._expectations[scalar, text] = self._read_expectation(scalar, text)
        return self._expectations[scalar, text]

    def _read_expectation(self, scalar: Scalar, text: str) -> Expectation | None:
        try:
            expectation = parse_expectation(text.strip(), scalar.span.line)
        except BadExpectation as error:
            self.problems.add(error.code, scalar.span, error.message, error.hint)
            return None
        first, *rest = expectation.path
        declared = None
        try:
            if self._is_saved(first) and rest:
                declared = check_path(self.saved[first].result, rest, within=first)
            elif self.spec is not None:
                declared = check_path(self.spec.result, expectation.path)
        except NotThere as error:
            whole = f"{first!r} is a whole result; name one of its fields"
            self._complain_of_path(scalar, first, whole if self._is_saved(first) and not rest else str(error))
            return None
        if wrong := mismatch(declared, expectation):
            self.problems.add(Code.BAD_EXPECTATION, scalar.span, wrong, EXAMPLE)
            return None
        return expectation

    def _is_saved(self, name: str) -> bool:
        return name in self.saved and self.saved[name].number <= self.number

    def _complain_of_path(self, scalar: Scalar, first: str, told: str) -> None:
        message, _, hint = told.partition("; ")
        if not self._is_saved(first):
            if first in self.saved:
                message = f"{first!r} is saved only later, in line {self.saved[first].line}"
                hint = "move the expectation there"
            elif near := self.problems.near(first, (name for name in self.saved if self._is_saved(name))):
                message, hint = f"{first!r} is neither saved by a step nor part of this step's result", near
        self.problems.add(Code.UNKNOWN_RESULT, scalar.place_of(first), message, hint)


def _saved(script: Script, actions: Mapping[str, Spec], problems: Problems) -> dict[str, Saved]:
    """The names that steps save; one that is saved twice is refused."""
    found: dict[str, Saved] = {}
    for number, step in enumerate(script.steps, 1):
        if (name := step.save_as) is None:
            continue
        if first := found.get(name.text):
            message = f"{name.text!r} is saved twice, first in line {first.line}"
            problems.add(Code.DUPLICATE_NAME, name.span, message, "choose another name")
            continue
        spec = actions.get(step.action.text)
        found[name.text] = Saved(number=number, line=name.span.line, result=spec.result if spec else None)
    return found


def _texts(script: Script) -> Iterator[Scalar]:
    """Every scalar of the steps in which a variable may stand."""
    for step in script.steps:
        for entry in step.arguments:
            yield from scalars_of(entry.value)
        if step.timeout:
            yield step.timeout
        yield from filter(None, (step.runs_in, step.on, step.fails))
        yield from step.expect
