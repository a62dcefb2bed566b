"""What a configuration class makes of an object: the values it fills in, and those it replaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hfbench.models.diff.keys import same_value
from hfbench.models.explain.classes import ClassTable, ConfigClass
from hfbench.models.explain.expressions import Unworkable, worked_out
from hfbench.models.explain.steps import LOCAL
from hfbench.models.resolution.rope_rules import Parameters, layers_of, read_in_transformers
from hfbench.models.runtimes import Names, rules

OLD_NAMES = {"torch_dtype": "dtype"}
"""Names that every class still takes."""

ROPE = "rope_parameters"
MOST_PARTS = 4
"""Configurations nested in each other; the deepest real ones have three."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """A value that stands in no file. `owner` is the class that assumes it, `how` the expression that gave it.

    `known` is false where the class works it out in a way that cannot be told from here.
    """

    path: Path
    value: Any
    owner: str
    how: str = ""
    known: bool = True


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value of a file that the class turns into another one."""

    path: Path
    value: Any
    owner: str
    how: str = ""


def fill(section: Mapping[str, Any], kind: ConfigClass, table: ClassTable) -> Iterator[Filled | Replaced]:
    """What a class makes of an object and of the configurations nested in it."""
    yield from _fill(section, kind, table, (), MOST_PARTS)


def _fill(
    section: Mapping[str, Any], kind: ConfigClass, table: ClassTable, path: Path, left: int
) -> Iterator[Filled | Replaced]:
    given = {kind.names.get(OLD_NAMES.get(key, key), OLD_NAMES.get(key, key)): value for key, value in section.items()}
    given |= {key: section[key] for key in section if key in kind.fields}
    after, how = _after(kind, given)
    for name, owner in kind.owners.items():
        if name in kind.parts or name == ROPE or name.startswith("_"):
            continue
        if name not in given:
            known = name in after
            yield Filled((*path, name), after.get(name), owner, how.get(name, "") if known else "", known)
        elif name in after and not same_value(after[name], given[name]):
            yield Replaced((*path, _written(name, section, kind)), after[name], kind.name, how.get(name, ""))
    if ROPE in kind.fields:
        yield from _rope(section, kind, after, table.names, path)
    for name, told in kind.parts.items():
        yield from _part(given.get(name), name, told, table, path, kind, left)


class _Fields(dict[str, Any]):
    """Values of fields and of a function's own variables, under every name they have."""

    def __init__(self, names: Mapping[str, str], values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.names = names

    def __missing__(self, name: str) -> Any:
        return self[self.names[name]]


def _after(kind: ConfigClass, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields that can be told once the class is done, and the expressions that set them."""
    known = _Fields(kind.names, {key: value for key, value in kind.fields.items() if key not in kind.unspelled})
    known.update({key: value for key, value in given.items() if key in kind.fields})
    beside = {key: value for key, value in given.items() if key not in kind.fields}
    how: dict[str, str] = {}
    for target, text, source in kind.steps:
        name = kind.names.get(target, target)
        try:
            value = worked_out(text, known, beside)
        except Unworkable:
            known.pop(name, None)
            continue
        if name not in known or not same_value(value, known[name]):
            how[name] = source
        known[name] = value
    return {key: value for key, value in known.items() if not key.startswith(LOCAL)}, how


def _written(name: str, section: Mapping[str, Any], kind: ConfigClass) -> str:
    """The field as the file spells it."""
    others = (key for key in section if kind.names.get(key) == name or OLD_NAMES.get(key) == name)
    return name if name in section else next(others, name)


def _part(
    section: Any, name: str, told: str, table: ClassTable, path: Path, around: ConfigClass, left: int
) -> Iterator[Filled | Replaced]:
    """A nested configuration: its own defaults, or one line when all of it is left to its class."""
    given = section if isinstance(section, dict) else {}
    inner = table.of_part(told, given)
    if inner is not None and isinstance(section, dict) and left:
        yield from _fill(section, inner, table, (*path, name), left - 1)
    elif section is None and inner is not None:
        yield Filled((*path, name), {}, around.name, f"every default of {inner.name}")
    elif section is None:
        yield Filled((*path, name), None, around.name, known=False)


def _rope(
    section: Mapping[str, Any], kind: ConfigClass, after: Mapping[str, Any], names: Names, path: Path
) -> Iterator[Filled]:
    """What RoPE gets that no key of the object gives it."""
    model_type = _type_of(kind, section, names)
    holder = "rope_scaling" if section.get("rope_scaling") else ROPE
    if ROPE not in after or (kind.own_rope and model_type not in rules("rope")["families"]):
        if not section.get(holder):
            yield Filled((*path, ROPE), None, kind.name, known=False)
        return
    whole = {**section, holder: section.get(holder) or after[ROPE]}
    reading = read_in_transformers(whole, model_type, names.rope.get(model_type, {}))
    if reading.parameters is None:
        return
    written = section.get(holder) or {}
    for label, parameters in _labelled(reading.parameters):
        if parameters.get("rope_type") == "default":
            parameters["rope_type"] = kind.rope_type
        beside = (written.get(label) if label else written) or {}
        for key, value in parameters.items():
            if key in beside or (key == "rope_type" and "type" in beside) or _from_root(key, value, section):
                continue
            at = (*path, ROPE, label, key) if label else (*path, ROPE, key)
            yield Filled(at, value, kind.name, _rope_source(key, value, section))


def _type_of(kind: ConfigClass, section: Mapping[str, Any], names: Names) -> str:
    """The model type the class stands for; more than one may lead to it."""
    told = section.get("model_type")
    if isinstance(told, str) and names.config_classes.get(told) == kind.name:
        return told
    return next((each for each, name in names.config_classes.items() if name == kind.name), "")


def _labelled(parameters: Parameters) -> Iterator[tuple[str, Parameters]]:
    """The parameters of each layer type by its name, or all of them without one."""
    layers = list(layers_of(parameters))
    for each in layers:
        yield next((key for key, value in parameters.items() if value is each), ""), each


def _from_root(key: str, value: Any, section: Mapping[str, Any]) -> bool:
    """True for a parameter that only moved: the root of the configuration gives it under this or an older name."""
    rope = rules("rope")
    older = {"rope_theta": rope["theta_names"], "partial_rotary_factor": rope["partial_names"]}
    return any(name in section and same_value(section[name], value) for name in older.get(key, [key]))


def _rope_source(key: str, value: Any, section: Mapping[str, Any]) -> str:
    from_context = key == rules("rope")["original"] and same_value(section.get("max_position_embeddings"), value)
    return "max_position_embeddings" if from_context else ""
