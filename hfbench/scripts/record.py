"""Records dispatched actions as a script: what was asked for, never the keys that asked."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from hfbench.actions.base import Spec
from hfbench.errors import HfbenchError, UsageError
from hfbench.scripts.format import arguments_of, script_text
from hfbench.scripts.templates import escape
from hfbench.scripts.tree import Value


@dataclass
class Recorder:
    """Listens where actions are dispatched. Models become variables; secrets and defaults are not written.

    The home folder is written `~` in models, the only fields in which it is expanded again.
    """

    name: str = "recorded"
    recording: bool = False
    _steps: list[tuple[str, dict[str, Value]]] = field(default_factory=list)
    _models: dict[str, str] = field(default_factory=dict)
    """Variable names by the model they stand for."""
    _saved: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        """Begin an empty recording."""
        self._steps, self._models, self._saved = [], {}, {}
        self.recording = True

    def stop(self) -> None:
        """Take no more steps; what was recorded stays."""
        self.recording = False

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, spec: Spec, request: object, *, runs_in: str = "", on: str = "") -> None:
        """Take one dispatched action, if recording. The result of a job gets a name, so that it can be expected."""
        if not self.recording:
            return
        arguments = arguments_of(spec, request)
        for param in spec.params:
            if param.kind == "model" and isinstance(model := arguments.get(param.name), str) and model:
                arguments[param.name] = f"{{{{ {self._variable(model)} }}}}"
        if runs_in:
            arguments["in"] = escape(runs_in)
        if on:
            arguments["on"] = escape(on)
        if not spec.inline:
            arguments["save_as"] = self._save_name(spec)
        self._steps.append((spec.name, arguments))

    def text(self) -> str:
        """The script so far; the same steps give the same bytes."""
        return script_text(self.name, {name: model for model, name in self._models.items()}, self._steps)

    def save(self, path: Path, *, replace: bool = False) -> None:
        """Write the script; UsageError when there is nothing to write or the file is there already."""
        if not self._steps:
            raise UsageError("nothing is recorded yet", where=path, remedy="run an action first")
        write_script(path, self.text(), replace=replace)

    def _variable(self, model: str) -> str:
        model = _below_home(model)
        if model not in self._models:
            count = len(self._models) + 1
            self._models[model] = "model" if count == 1 else f"model_{count}"
        return self._models[model]

    def _save_name(self, spec: Spec) -> str:
        name = spec.name.rpartition(".")[2].replace("-", "_")
        count = self._saved[name] = self._saved.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"


def write_script(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a script to a file; UsageError when the file is there already and not to be replaced."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if replace else os.O_EXCL)
    try:
        with open(os.open(path, flags, 0o644), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError("the file is there already", where=path, remedy="choose another name") from None
    except OSError as error:
        remedy = "choose a folder that exists and is writable"
        raise HfbenchError(f"the script cannot be written: {error.strerror}", where=path, remedy=remedy) from None


def _below_home(model: str) -> str:
    home = os.path.expanduser("~")
    return f"~{model.removeprefix(home)}" if home != "/" and model.startswith(f"{home}/") else model
