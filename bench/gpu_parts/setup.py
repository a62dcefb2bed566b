"""What every part is told, and how it calls an action by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.actions import registry
from hfbench.codec import encode
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Where a part runs. `dry` is a run on the CPU with tiny sizes, which proves the script and measures nothing."""

    device: str
    dry: bool
    scratch: Path
    seconds: float
    """What the part may take; what it has by then is kept only if it returns in time."""

    @property
    def model(self) -> Path:
        """The folder of the model, made by the part `model`."""
        return self.scratch / "model"


def perform(name: str, **values: Any) -> Any:
    """The result of an action as plain data; HfbenchError in its own sentence, also where there is no such action."""
    spec = registry.find(name)
    spec.require()
    return encode(spec.build(values).perform(Run()))


def with_model(setup: Setup) -> str:
    """The model's folder; HfbenchError where it was not made."""
    if not (setup.model / "config.json").is_file():
        raise HfbenchError("there is no model: the part `model`, which makes it, failed or is not among --only")
    return str(setup.model)


def reasons(data: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every value that could not be read, by its path, with the reason that stands in its place."""
    if isinstance(data, dict):
        if set(data) == {"reason"}:
            yield where, str(data["reason"])
            return
        for key, value in data.items():
            yield from reasons(value, f"{where}.{key}" if where else str(key))
    if isinstance(data, list):
        for place, value in enumerate(data):
            yield from reasons(value, f"{where}[{place}]")


def slim(data: Any) -> Any:
    """The same without raw samples, whose count and statistics stay: thousands of rows would hold millions."""
    if isinstance(data, dict):
        return {key: slim(value) for key, value in data.items() if key != "samples" or not isinstance(value, list)}
    return [slim(each) for each in data] if isinstance(data, list) else data
