"""Finds the rotary embedding settings of a configuration under all their names, old and new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hfbench.checks.subject import Section, Subject

LAYER_TYPES = frozenset(
    [
        "full_attention",
        "sliding_attention",
        "chunked_attention",
        "linear_attention",
        "compressed_attention",
        "global",
        "local",
        "main",
        "compress",
        "attention",
        "moe",
        "dense",
        "hybrid",
    ]
)
"""Names of layer types under which settings may be nested, one object for each."""

RENAMED = {"su": "longrope", "mrope": "default"}
"""Old types and what they are called today."""

REQUIRED: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "proportional": (),
    "axial": (),
}
"""Types that transformers 5.24 validates and the keys it wants. original_max_position_embeddings is filled in."""

OF_VLLM = frozenset(
    {
        "bailing_mrope",
        "deepseek_llama_scaling",
        "deepseek_yarn",
        "mllama4",
        "ntk",
        "openpangu",
        "telechat3-yarn",
        "xdrope",
    }
)
"""Further types that vLLM 0.33 has; transformers only logs a line and fails when it builds the model."""


@dataclass(frozen=True, slots=True)
class Rope:
    """One object of settings: where it stands, its values, and the section it belongs to."""

    path: str
    values: Mapping[str, Any]
    section: Section

    @property
    def kind(self) -> str | None:
        """The type as today's transformers reads it; None when there is none or it is no text."""
        for key in ("rope_type", "type"):
            value = self.values.get(key)
            if isinstance(value, str):
                return RENAMED.get(value, value)
        return None


MISSING = object()
"""Stands for a base that is given nowhere; None is one that is null."""


def ropes(subject: Subject) -> Iterator[Rope]:
    """All objects of settings, those nested by layer type one by one. Of two that compete, rope_scaling counts."""
    for section in subject.sections:
        key = next((key for key in ("rope_scaling", "rope_parameters") if section.values.get(key)), None)
        given = section.values.get(key) if key else None
        if not isinstance(given, dict) or not key:
            continue
        nested = {name: each for name, each in given.items() if isinstance(each, dict) and name in LAYER_TYPES}
        if nested:
            for name, each in nested.items():
                yield Rope(f"{section.path}{key}.{name}", each, section)
        else:
            yield Rope(f"{section.path}{key}", given, section)


def theta_of(section: Section) -> Any:
    """The base that a section gives in any place; MISSING when it gives none."""
    for key in ("rope_parameters", "rope_scaling"):
        given = section.values.get(key)
        if isinstance(given, dict):
            nested = [each for each in given.values() if isinstance(each, dict)]
            for each in (given, *nested):
                if "rope_theta" in each:
                    return each["rope_theta"]
    return section.values.get("rope_theta", MISSING)


def family_of(subject: Subject, section: Section) -> str | None:
    """The model type a section belongs to: its own, else the root's."""
    return section.model_type or subject.config.model_type
