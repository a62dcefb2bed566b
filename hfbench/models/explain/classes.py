"""The configuration classes of transformers: shipped as a table, read from the installed package when it differs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from hfbench.models.explain.scan import AUTO_PREFIX, BASE, BASE_FILE, Class, classes_in, generation_defaults
from hfbench.models.explain.steps import SUPER, Step
from hfbench.models.runtimes import DATA, TITLES, Names, installed_root, known, shipped

TABLE = "config_defaults.jsonl"
DEEPEST = 8
"""Classes that build upon each other; the longest line in transformers has four."""


@dataclass(frozen=True, kw_only=True)
class ConfigClass:
    """One class with all it takes from those it builds upon."""

    name: str
    fields: Mapping[str, Any]
    """Fields and the values they are declared with, the class's own first."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """The class that declares each field."""
    unspelled: frozenset[str] = frozenset()
    """Fields whose declared value cannot be told from the source."""
    steps: tuple[Step, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Other names of fields."""
    parts: Mapping[str, str] = field(default_factory=dict)
    own_rope: bool = False
    rope_type: str = "default"


class ClassTable:
    """Classes by name, looked up one at a time: the whole table has 850 of them."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._found: dict[str, ConfigClass | None] = {}

    @property
    def title(self) -> str:
        """`transformers 5.24.0`."""
        return self.names.title

    @property
    def generation(self) -> Mapping[str, Any]:
        """What `generate` takes for settings that no file tells."""
        raise NotImplementedError

    def told(self, name: str) -> Class | None:
        """What the source says of one class alone."""
        raise NotImplementedError

    def find(self, name: str) -> ConfigClass | None:
        """The class of that name with all it takes over, None when there is none."""
        if name not in self._found:
            self._found[name] = self._joined(name)
        return self._found[name]

    def of_type(self, model_type: object) -> ConfigClass | None:
        """The class of a model type."""
        name = self.names.config_classes.get(model_type) if isinstance(model_type, str) else None
        return self.find(name) if name else None

    def of_part(self, told: str, section: Mapping[str, Any]) -> ConfigClass | None:
        """The class of a nested configuration; its own model_type decides where the one around it leaves that open."""
        if told.startswith(AUTO_PREFIX):
            return self.of_type(section.get("model_type", told.removeprefix(AUTO_PREFIX)))
        return self.find(told)

    def _joined(self, name: str) -> ConfigClass | None:
        line = list(self._lineage(name, DEEPEST))
        if not line:
            return None
        fields: dict[str, Any] = {}
        owners: dict[str, str] = {}
        names: dict[str, str] = {}
        parts: dict[str, str] = {}
        for owner, each in line:
            for key, value in each["fields"].items():
                if key not in fields:
                    fields[key], owners[key] = value, owner
            names = names or each.get("names", {})
            parts = parts or each.get("parts", {})
        for key in names.keys() & fields.keys():  # the other name answers for a field of its own
            if names[key] not in fields:
                fields[names[key]], owners[names[key]] = fields[key], owners[key]
            del fields[key], owners[key]
        unspelled = frozenset(
            key for owner, each in line for key in each.get("unspelled", ()) if owners.get(key) == owner
        )
        return ConfigClass(
            name=name,
            fields=fields,
            owners=owners,
            unspelled=unspelled,
            steps=tuple(self._steps(line)),
            names=names,
            parts=parts,
            own_rope=any(each.get("own_rope") for _, each in line),
            rope_type=next((each["rope_type"] for _, each in line if "rope_type" in each), "default"),
        )

    def _lineage(self, name: str, left: int) -> list[tuple[str, Class]]:
        told = self.told(name)
        if told is None or not left:
            return []
        found = [(name, told)]
        for base in told["bases"]:
            found += [each for each in self._lineage(base, left - 1) if each not in found]
        if any(each == BASE for each, _ in found):  # the base of all comes last
            found = [each for each in found if each[0] != BASE] + [each for each in found if each[0] == BASE][:1]
        return found

    def _steps(self, line: list[tuple[str, Class]]) -> list[Step]:
        """The steps of the first class that has any, with those below it where it hands on to them."""
        for place, (_, each) in enumerate(line):
            if "steps" in each:
                below = self._steps(line[place + 1 :])
                return [step for own in each["steps"] for step in (below if own[0] == SUPER else [own])]
        return []


class ShippedTable(ClassTable):
    """The table that came with hfbench; a line is parsed when its class is asked for."""

    @cached_property
    def _text(self) -> str:
        return (DATA / TABLE).read_text("utf-8")

    @cached_property
    def _head(self) -> dict[str, Any]:
        head: dict[str, Any] = json.loads(self._text[: self._text.index("\n")])
        return head

    @property
    def version(self) -> str:
        """The version of transformers the table was read from."""
        return str(self._head["version"])

    @property
    def title(self) -> str:
        return f"{TITLES['transformers']} {self.version}"

    @property
    def generation(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._head["generation"]
        return found

    def told(self, name: str) -> Class | None:
        begin = self._text.find(f'\n["{name}",')
        if begin < 0:
            return None
        found: Class = json.loads(self._text[begin : self._text.index("\n", begin + 1)])[1]
        return found


class InstalledTable(ClassTable):
    """The classes of the package beside hfbench, taken from its source file by file."""

    def __init__(self, names: Names, root: Path) -> None:
        super().__init__(names)
        self.root = root
        self._read: dict[str, Class] = {}

    @cached_property
    def generation(self) -> Mapping[str, Any]:
        return generation_defaults(self.root)

    @cached_property
    def _files(self) -> dict[str, Path]:
        """Which file holds a class."""
        found: dict[str, Path] = {}
        for path in [*sorted((self.root / "models").glob("*/configuration_*.py")), self.root / BASE_FILE]:
            for name in re.findall(r"^class (\w+)\(", path.read_text("utf-8", "replace"), re.MULTILINE):
                found[name] = path
        return found

    def told(self, name: str) -> Class | None:
        if name not in self._read and name in self._files:
            self._read.update(classes_in(self._files[name]))
        return self._read.get(name)


@lru_cache(maxsize=1)
def shipped_table() -> ShippedTable:
    """The classes of the transformers that hfbench was made with, whatever is installed beside it."""
    return ShippedTable(shipped("transformers"))


@lru_cache(maxsize=1)
def class_table() -> ClassTable:
    """The classes of the installed transformers when there is one of another version, else those shipped."""
    names = known("transformers")
    ours = ShippedTable(names)
    root = installed_root("transformers")
    if names.version == ours.version or root is None:
        return ours
    found = InstalledTable(names, root)
    try:
        if found.generation and found.find(BASE) is not None:
            return found
    except (OSError, SyntaxError, ValueError, LookupError, RecursionError):
        pass  # laid out in a way this reader does not know
    return ours
