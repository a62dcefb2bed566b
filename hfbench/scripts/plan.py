"""What a script comes to: cells of validated steps, ready to run and independent of how they are run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.actions.base import Action, Spec
from hfbench.scripts.expectation import Expectation
from hfbench.scripts.parse import OnFail
from hfbench.scripts.templates import plain_text
from hfbench.scripts.tree import Plain

SECRET = "***"


def label_of(values: Mapping[str, Plain]) -> str:
    """The values of a cell in words."""
    return " ".join(f"{name}={plain_text(value)}" for name, value in values.items())


@dataclass(frozen=True, kw_only=True)
class Fails:
    """The failure that a step is expected to end with. `words` are part of its sentence, empty for any."""

    line: int
    words: str = ""

    @property
    def text(self) -> str:
        """As it stands in the script."""
        return f"fails: {self.words or 'true'}"


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step of one cell. `number` counts from 1 within the script, `timeout` is seconds."""

    number: int
    line: int
    spec: Spec
    request: Action
    timeout: float | None = None
    runs_in: str = ""
    """The environment its job runs in; empty leaves it to hfbench."""
    on: str = ""
    """Where its job runs, as `--on` takes it; empty is this machine."""
    save_as: str = ""
    expectations: tuple[Expectation, ...] = ()
    fails: Fails | None = None
    """How it is to fail; None where it is to go well."""
    on_fail: OnFail = "stop"

    def shown_values(self) -> dict[str, Any]:
        """The arguments as JSON data; secrets are starred out."""
        values = self.spec.values(self.request)
        hidden = {param.name for param in self.spec.params if param.secret}
        return {name: SECRET if name in hidden and value else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination of the matrix and its steps; without a matrix there is one cell without values."""

    values: Mapping[str, Plain]
    steps: tuple[PlannedStep, ...]

    @property
    def label(self) -> str:
        """The combination in words: `dtype=bf16 batch=8`."""
        return label_of(self.values)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All cells of a script in the order they run."""

    file: Path
    name: str
    sha256: str
    cells: tuple[Cell, ...]

    def __iter__(self) -> Iterator[tuple[Cell, PlannedStep]]:
        return ((cell, step) for cell in self.cells for step in cell.steps)

    @property
    def count(self) -> int:
        """Steps over all cells."""
        return sum(len(cell.steps) for cell in self.cells)
