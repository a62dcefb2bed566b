"""How long a context is: one reading of a configuration for everyone, by the rules of `data/context.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from hfbench.estimate.absent import ABSENT
from hfbench.models.resolution.rope_rules import layers_of, read_in_transformers, read_in_vllm
from hfbench.models.resolution.trace import shown
from hfbench.models.runtimes import rules, shipped

if TYPE_CHECKING:
    from hfbench.models.explain.classes import ConfigClass, ShippedTable

TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config", "decoder")
"""Where models of several kinds of input keep the facts of their language model."""
MOST_PARTS = 3
"""Configurations nested in each other that are looked into."""
LONGEST_TOLD = 2**62

Origin = Literal["file", "class", "assumed", "nothing"]


@dataclass(frozen=True, kw_only=True)
class Context:
    """The longest context in tokens, None where nothing limits it, and how it comes about.

    `key` is the path of the key that told `length`, which `limit` is before scaling; `by` names the class whose
    default it is where no file gives the key. A limit that nobody told is `assumed` by the runtime.
    """

    limit: int | None
    origin: Origin
    key: str = ""
    length: int | None = None
    by: str = ""
    whys: tuple[str, ...] = ()

    @property
    def told(self) -> int | None:
        """The limit where a file or a class tells it, None where a runtime only assumes one."""
        return self.limit if self.origin != "assumed" else None


@dataclass(frozen=True, slots=True)
class _Section:
    """One object of a configuration, read as its class reads it where that is known."""

    prefix: str
    raw: Mapping[str, Any]
    kind: str
    cls: ConfigClass | None

    def field(self, key: str) -> str:
        return self.cls.names.get(key, key) if self.cls else key

    def declares(self, key: str) -> bool:
        return self.cls is not None and self.field(key) in self.cls.fields

    def spelled(self, key: str) -> str | None:
        """The key as the file gives it, under any name of the field; None where the file does not."""
        field = self.field(key)
        others = (each for each in context_keys() if self.field(each) == field)
        return next((each for each in (key, field, *others) if each in self.raw), None)

    def length(self, key: str) -> int | None:
        """A number of tokens under a key: given, else declared by the class."""
        given = self.spelled(key)
        value = self.raw[given] if given else self.cls.fields.get(self.field(key)) if self.cls else None
        told = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < LONGEST_TOLD
        return int(value) if told else None  # type: ignore[arg-type]


def context_of(raw: Mapping[str, Any], runtime: str) -> Context:
    """The context that a runtime, `vllm` or a transformers, takes from a configuration.

    vLLM takes the smallest of its keys and multiplies it by some RoPE factors; transformers has one key a class.
    """
    if not raw:
        return Context(limit=None, origin="nothing")
    table = rules("context")
    if runtime != "vllm":
        return _first_told(_language_part(raw, ()), table["first"])
    section = _language_part(raw, _types_of_vllm())
    found = [(length, key) for key in table["keys"] if (length := section.length(key)) is not None]
    if not found:
        return Context(limit=table["assumed"], origin="assumed")
    smallest = min(found, key=lambda each: (each[0], each[1] not in section.raw))  # rather as the file spells it
    length, key = next((each for each in found if each[1] == table["wins"]), smallest)
    whys = list(_passed_over(raw, section, length))
    limit = _scaled(length, section, whys)
    return _told(section, key, length, limit, whys)


def told_context(raw: Mapping[str, Any]) -> int | None:
    """The context to name where nobody asks for a runtime: vLLM's, and that of transformers where vLLM would guess."""
    told = context_of(raw, "vllm").told
    return told if told is not None else context_of(raw, "transformers").limit


@lru_cache(maxsize=1)
def context_keys() -> tuple[str, ...]:
    """Every name that a context is given, the most common first."""
    table = rules("context")
    return tuple(dict.fromkeys((*table["first"], *table["keys"])))


def _first_told(section: _Section, names: list[str]) -> Context:
    """The first name that the class has; any name in the file where no class has one."""
    declared = [key for key in names if section.declares(key)]
    found = next((key for key in declared or names if section.length(key) is not None), None)
    length = section.length(found) if found else None
    if found is None or length is None:
        return Context(limit=None, origin="nothing")
    return _told(section, found, length, length, [])


def _told(section: _Section, key: str, length: int, limit: int, whys: list[str]) -> Context:
    given = section.spelled(key)
    return Context(
        limit=limit,
        origin="file" if given or section.cls is None else "class",
        key=f"{section.prefix}{given or key}",
        length=length,
        by="" if given or section.cls is None else section.cls.name,
        whys=tuple(whys),
    )


def _language_part(raw: Mapping[str, Any], without_class: tuple[str, ...]) -> _Section:
    """The part of a configuration that tells of the language model.

    Where the class is known it decides, for it may pass a key at the root over. Else it is the innermost part that
    tells a context, and the root when none does.
    """
    told = raw.get("model_type")
    kind = told if isinstance(told, str) else ""
    cls = None if kind in without_class else _classes().of_type(kind)
    if cls is not None:
        return _by_class(_Section("", raw, kind, cls), MOST_PARTS)
    parts = [each for each in _parts(raw, kind) if any(each.length(key) is not None for key in context_keys())]
    return parts[-1] if parts else _Section("", raw, kind, None)


def _by_class(section: _Section, left: int) -> _Section:
    """The language part below an object of a known class; what a file leaves out is as its class fills it in."""
    assert section.cls is not None
    name = next((each for each in TEXT_PARTS if each in section.cls.parts), None)
    if name is None or not left:
        return section
    given = section.raw.get(name)
    prefix = f"{section.prefix}{name}."
    if not isinstance(given, dict):
        flat = section.kind in rules("context")["flat"]
        given = {key: value for key, value in section.raw.items() if key != "model_type"} if flat else None
        prefix = section.prefix if flat else prefix
    inner = ABSENT.get((section.kind, name), {}) if given is None else given
    cls = _classes().of_part(section.cls.parts[name], inner)
    kind = inner.get("model_type")
    found = _Section(prefix, inner, kind if isinstance(kind, str) else f"{section.kind}_text", cls)
    return _by_class(found, left - 1) if cls is not None else found


def _parts(raw: Mapping[str, Any], kind: str) -> Iterator[_Section]:
    """The nested language parts, the innermost last; without a class, for the one around them is not known."""
    pending = [("", raw, MOST_PARTS - 1)]
    while pending:
        prefix, section, left = pending.pop(0)
        for name in TEXT_PARTS:
            nested = section.get(name)
            if isinstance(nested, dict) and left:
                told = nested.get("model_type")
                path = f"{prefix}{name}."
                yield _Section(path, nested, told if isinstance(told, str) else f"{kind}_text", None)
                pending.append((path, nested, left - 1))


def _passed_over(raw: Mapping[str, Any], section: _Section, length: int) -> Iterator[str]:
    """A key at the root that says something else, and that the class does not read."""
    if section.prefix and section.cls is not None:
        root = _Section("", raw, "", None)
        for key in rules("context")["keys"]:
            other = root.length(key)
            if other is not None and other != length:
                yield f"{key} {other:,} at the root is not read, {section.cls.name} looks into its own part"
                return


def _scaled(length: int, section: _Section, whys: list[str]) -> int:
    """vLLM multiplies by the factor of linear and dynamic scaling; yarn, llama3 and longrope tell the scaled length."""
    table = rules("context")
    for parameters in layers_of(_rope(section)):
        kind, factor = parameters.get("rope_type"), parameters.get("factor")
        if kind == "longrope" and type(section.raw.get("original_max_position_embeddings")) is int:
            original: int = section.raw["original_max_position_embeddings"]
            whys.append(f"vLLM starts at original_max_position_embeddings for longrope; up to {length:,} on request")
            return original
        if not isinstance(factor, (int, float)) or isinstance(factor, bool) or not 0 < factor < 2**31:
            continue
        if kind in table["not_scaled"]:
            whys.append(f"{shown(kind)} tells the scaled length already: the factor {factor} is not applied again")
        elif not any(word in section.kind for word in table["scaled_already"]):
            whys.append(f"{length:,} times the factor {factor} of {shown(kind)}")
            return int(length * factor)
    return length


def _rope(section: _Section) -> dict[str, Any]:
    """The RoPE parameters that vLLM ends up with, empty without RoPE."""
    families = _classes().names.rope
    kind = section.kind if section.kind in families else f"{section.kind}_text"
    if kind not in families and not (section.raw.get("rope_scaling") or section.raw.get("rope_parameters")):
        return {}
    first = read_in_transformers(section.raw, kind, families.get(kind, {}))
    return dict(read_in_vllm(section.raw, first).parameters or {})


def _classes() -> ShippedTable:
    from hfbench.models.explain.classes import shipped_table  # read when a configuration is, not before

    return shipped_table()


@lru_cache(maxsize=1)
def _types_of_vllm() -> tuple[str, ...]:
    """Model types that vLLM reads with classes of its own, which are not known here."""
    return tuple(shipped("vllm").config_classes)
