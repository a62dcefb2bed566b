"""The variables and axes of a script: which texts use which, and what they come to in one cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from hfbench.scripts.errors import Code, Problems, ScriptError
from hfbench.scripts.parse import Axis, Script, Variable
from hfbench.scripts.templates import Name, TemplateProblem, fill, names_in
from hfbench.scripts.tree import Listing, Plain, Scalar, Value

MAX_CHARACTERS = 32 * 1024 * 1024
"""Characters that filling in may produce over all cells of a script."""


class Broken(Exception):
    """A text depends on something that was complained about already."""


@dataclass(frozen=True, kw_only=True)
class Variables:
    """The variables of a script, and the order in which to fill them and the axes: each after those it uses.

    With a variable that needs itself the order is empty: nothing can be filled in.
    """

    declared: Mapping[str, Variable]
    order: tuple[str, ...]
    unused: tuple[ScriptError, ...]


def check_variables(script: Script, texts: Iterable[Scalar], problems: Problems) -> Variables:
    """Check every `{{ name }}` of the script: its form, that the name exists, and that no variable needs itself.

    `texts` are the scalars of the steps; variables that neither they nor the axes lead to are reported as unused.
    """
    known: dict[str, Variable | Axis] = {**script.variables, **script.axes}
    checker = _Checker(known, problems)
    wanted = [used for text in texts for used in checker.uses(text)]
    wanted += [used for axis in script.axes.values() for scalar in axis.values for used in checker.uses(scalar)]
    graph = {name: checker.uses_of(variable.scalars) for name, variable in script.variables.items()}
    graph |= {name: checker.uses_of(axis.values) for name, axis in script.axes.items()}
    needed = _reach(graph, wanted)
    order: tuple[str, ...] = ()
    try:
        order = tuple(name for name in TopologicalSorter(graph).static_order() if name in needed or name in script.axes)
    except CycleError as error:
        cycle = error.args[1][::-1]
        span = known[cycle[0]].span
        problems.add(Code.VARIABLE_CYCLE, span, f"a variable needs itself: {' -> '.join(cycle[:8])}")
    unused = [
        ScriptError(variable.span, "unused-variable", f"warning: nothing uses the variable {name!r}")
        for name, variable in script.variables.items()
        if name not in needed
    ]
    return Variables(declared=script.variables, order=order, unused=tuple(sorted(unused)))


class Environment:
    """The values of one cell. A variable that cannot be filled in makes the texts that use it Broken."""

    def __init__(self, variables: Variables, axes: Mapping[str, Scalar], budget: Budget, problems: Problems) -> None:
        self.budget = budget
        self.problems = problems
        self.values: dict[str, Value] = {}
        for name in variables.order:
            if name in axes:
                self._fill_axis(name, axes[name])
            elif name in variables.declared:
                self._fill_variable(variables.declared[name])
        self.cell: dict[str, Plain] = {name: self._single(name) for name in axes}

    def value(self, scalar: Scalar) -> Value:
        """The scalar with its variables filled in; Broken when that failed, which is told once."""
        if scalar.broken:
            raise Broken
        if not isinstance(scalar.value, str):
            return scalar.value
        try:
            filled = fill(scalar.value, self.values)
        except KeyError:
            raise Broken from None
        except TemplateProblem as problem:
            self.problems.add(problem.code, scalar.place_of(problem.fragment), problem.message, problem.hint)
            raise Broken from None
        if isinstance(filled, str) and filled is not scalar.value:
            self.budget.spend(len(filled), scalar, self.problems)
        return filled

    def _single(self, name: str) -> Plain:
        value = self.values.get(name)
        return None if isinstance(value, list) else value

    def _fill_variable(self, variable: Variable) -> None:
        try:
            if isinstance(variable.node, Listing):
                items = [self.value(scalar) for scalar in variable.scalars]
                self.values[variable.name] = [item for item in items if not isinstance(item, list)]
            else:
                self.values[variable.name] = self.value(variable.node)
        except Broken:
            pass  # whatever uses it is Broken too

    def _fill_axis(self, name: str, scalar: Scalar) -> None:
        try:
            value = self.value(scalar)
        except Broken:
            return
        if isinstance(value, list):
            message = f"the axis {name!r} takes single values, and this one comes to a list"
            self.problems.add(Code.WRONG_TYPE, scalar.span, message)
            return
        self.values[name] = value


class Budget:
    """Bounds the text a script can grow to, so that a small file cannot fill the memory."""

    def __init__(self) -> None:
        self.left = MAX_CHARACTERS

    def spend(self, characters: int, scalar: Scalar, problems: Problems) -> None:
        """Take characters from the budget; Broken once it is used up."""
        self.left -= characters
        if self.left < 0:
            message = f"the texts of all cells grow beyond {MAX_CHARACTERS >> 20} million characters"
            problems.add(Code.TOO_LONG, scalar.span, message)
            raise Broken


class _Checker:
    def __init__(self, known: Mapping[str, object], problems: Problems) -> None:
        self.known = known
        self.problems = problems

    def uses(self, scalar: Scalar) -> list[str]:
        """The known names a scalar uses; the others are complained about."""
        if not isinstance(scalar.value, str):
            return []
        try:
            names = names_in(scalar.value)
        except TemplateProblem as problem:
            self.problems.add(problem.code, scalar.place_of(problem.fragment), problem.message, problem.hint)
            return []
        return [name.name for name in names if self._is_known(name, scalar)]

    def uses_of(self, scalars: Iterable[Scalar]) -> list[str]:
        """The known names several scalars use."""
        return [name for scalar in scalars for name in self.uses(scalar)]

    def _is_known(self, name: Name, scalar: Scalar) -> bool:
        if name.name in self.known:
            return True
        hint = self.problems.near(name.name, self.known)
        if not hint:
            listed = ", ".join(list(self.known)[:12])
            hint = f"known: {listed}" if listed else "declare it under vars"
        self.problems.add(Code.UNKNOWN_VARIABLE, scalar.place_of(name.raw), f"unknown variable {name.name!r}", hint)
        return False


def _reach(graph: Mapping[str, list[str]], starts: Iterable[str]) -> set[str]:
    found, waiting = set(), list(starts)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += graph.get(name, ())
    return found
