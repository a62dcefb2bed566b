"""The records that tell what a key is; light to import, for declarations and screens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hfbench.models.problem import Problem, worst

Origin = Literal["file", "default"]

GENERATION = "generation_config.json"


@dataclass(frozen=True, kw_only=True)
class ExplainedKey:
    """One value by its full path, such as `rope_scaling.factor`.

    `file` is where it stands, of a default where it would. `by` tells whose default it is, `how` the expression that
    gave it; `known` is false for a default that the class works out in a way that cannot be told from the files.
    """

    key: str
    value: Any
    meaning: str
    """One sentence, empty for a key nobody has explained yet."""
    origin: Origin
    file: str
    by: str = ""
    how: str = ""
    known: bool = True
    becomes: str = ""
    """What the configuration class makes of a value of the file, as JSON text; empty when it takes it as it is."""


@dataclass(frozen=True, kw_only=True)
class Explained:
    """Every key of a model's configuration files, then what the runtime fills in, then generation settings.

    `source` is the file the configuration was read from, `config_class` the class of transformers that reads it.
    """

    model: str
    source: str | None
    config_class: str | None
    runtime: str
    """The version whose defaults are told: `transformers 5.24.0`."""
    keys: tuple[ExplainedKey, ...]
    notes: tuple[str, ...] = ()
    """Why there are no defaults, and other things to know."""
    problems: tuple[Problem, ...] = ()

    @property
    def broken(self) -> bool:
        """True when a configuration cannot be read as one."""
        return worst(self.problems) == "error"

    def told(self, origin: Origin) -> int:
        """How many keys come from there."""
        return sum(each.origin == origin for each in self.keys)
