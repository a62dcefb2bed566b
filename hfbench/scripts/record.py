"""Records dispatched actions as a script: what was asked for, never the keys that asked."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hfbench.actions.base import Spec
from hfbench.errors import HfbenchError, UsageError
from hfbench.scripts.format import arguments_of, script_text
from hfbench.scripts.templates import escape
from hfbench.scripts.tree import Plain, Value

SUFFIX = ".hfb.yaml"


@dataclass
class _Part:
    """A script of a recording: steps one after another, or one step with the matrix of a sweep."""

    matrix: dict[str, list[Plain]] = field(default_factory=dict)
    steps: list[tuple[str, dict[str, Value]]] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    """Variable names by the model they stand for."""
    saved: dict[str, int] = field(default_factory=dict)

    def add(self, spec: Spec, arguments: dict[str, Value]) -> None:
        """Take a step. Models become variables; the result of a job gets a name, so that it can be expected."""
        for param in spec.params:
            model = arguments.get(param.name)
            if param.kind == "model" and isinstance(model, str) and model and param.name not in self.matrix:
                arguments[param.name] = f"{{{{ {self._variable(model)} }}}}"
        if not spec.inline:
            arguments["save_as"] = self._save_name(spec)
        self.steps.append((spec.name, arguments))

    def text(self, name: str) -> str:
        """The script."""
        variables: dict[str, Value] = {variable: model for model, variable in self.models.items()}
        return script_text(name, variables, self.steps, matrix=self.matrix, on_fail="continue" if self.matrix else "")

    def _variable(self, model: str) -> str:
        model = _below_home(model)
        if model not in self.models:
            count = len(self.models) + 1 + ("model" in self.matrix)
            self.models[model] = "model" if count == 1 else f"model_{count}"
        return self.models[model]

    def _save_name(self, spec: Spec) -> str:
        name = spec.name.rpartition(".")[2].replace("-", "_")
        count = self.saved[name] = self.saved.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"


@dataclass
class Recorder:
    """Listens where actions are dispatched. Models become variables; secrets and defaults are not written.

    The home folder is written `~` in models, the only fields in which it is expanded again. A script has one matrix for
    all its steps, so that each sweep is a script of its own, and so is what was done between two.
    """

    name: str = "recorded"
    recording: bool = False
    _parts: list[_Part] = field(default_factory=list)

    def start(self) -> None:
        """Begin an empty recording."""
        self._parts = []
        self.recording = True

    def stop(self) -> None:
        """Take no more steps; what was recorded stays."""
        self.recording = False

    def __len__(self) -> int:
        return sum(len(part.steps) for part in self._parts)

    def add(self, spec: Spec, request: object, *, runs_in: str = "", on: str = "") -> None:
        """Take one dispatched action, if recording."""
        if not self.recording:
            return
        arguments = arguments_of(spec, request)
        if runs_in:
            arguments["in"] = escape(runs_in)
        if on:
            arguments["on"] = escape(on)
        if not self._parts or self._parts[-1].matrix:
            self._parts.append(_Part())
        self._parts[-1].add(spec, arguments)

    def add_sweep(self, spec: Spec, arguments: Mapping[str, Value], matrix: Mapping[str, Sequence[Plain]]) -> None:
        """Take a sweep of one action, if recording: the arguments of its step, and the values of each axis."""
        if not self.recording:
            return
        self._parts.append(_Part({axis: list(values) for axis, values in matrix.items()}))
        self._parts[-1].add(spec, dict(arguments))

    def texts(self) -> tuple[str, ...]:
        """The scripts so far, in the order they ran; the same steps give the same bytes."""
        return tuple(part.text(name) for part, name in zip(self._parts, self._numbered(self.name), strict=False))

    def save(self, path: Path, *, replace: bool = False) -> tuple[Path, ...]:
        """Write the scripts, the first to this path and others beside it with a number, and return their paths;
        UsageError when there is nothing to write or a file is there already."""
        if not self._parts:
            raise UsageError("nothing is recorded yet", where=path, remedy="run an action first")
        ending = SUFFIX if path.name.endswith(SUFFIX) else path.suffix
        names = self._numbered(path.name.removesuffix(ending))
        paths = tuple(path.with_name(f"{next(names)}{ending}") for _ in self._parts)
        if not replace:
            for each in paths:
                _refuse_taken(each)
        for each, text in zip(paths, self.texts(), strict=True):
            write_script(each, text, replace=replace)
        return paths

    def _numbered(self, name: str) -> Iterator[str]:
        """The name, then with 2, 3 and so on behind it."""
        yield name
        yield from (f"{name}-{number}" for number in itertools.count(2))


def write_script(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a script to a file; UsageError when the file is there already and not to be replaced."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if replace else os.O_EXCL)
    try:
        with open(os.open(path, flags, 0o644), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        remedy = "choose a folder that exists and is writable"
        raise HfbenchError(f"the script cannot be written: {error.strerror}", where=path, remedy=remedy) from None


def _refuse_taken(path: Path) -> None:
    if os.path.lexists(path):
        raise _taken(path)


def _taken(path: Path) -> UsageError:
    return UsageError("the file is there already", where=path, remedy="choose another name")


def _below_home(model: str) -> str:
    home = os.path.expanduser("~")
    return f"~{model.removeprefix(home)}" if home != "/" and model.startswith(f"{home}/") else model
