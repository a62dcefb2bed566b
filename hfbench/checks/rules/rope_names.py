"""Rotary position embeddings under the names of older releases, and who still reads them."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.known import uses_rope
from hfbench.checks.rope import MISSING, family_of, ropes, theta_of
from hfbench.checks.subject import Subject
from hfbench.models.problem import quoted

LEGACY_BASES = ("rotary_emb_base", "rotary_base", "rope_base")

HONOURED = {"gpt_neox": LEGACY_BASES, "gpt_neox_japanese": LEGACY_BASES}
"""Families that read the old names themselves."""


@rule("HB308", "old-rope-names", severity="info")
def old_rope_names(subject: Subject) -> Iterator[Found]:
    """The scaling is written in names of older releases.

    Why: today's runtimes rename them; releases of transformers around 4.43 failed on one spelling or the other.
    Remedy: write rope_type when you save the model again.
    """
    for each in ropes(subject):
        old = each.values.get("type")
        if isinstance(old, str) and "rope_type" not in each.values:
            message = f"{each.path}: type {quoted(old)} is read as rope_type {quoted(each.kind)}"
            yield Found(message=message, file="config.json", evidence={"before": old, "after": each.kind})
        elif each.values.get("rope_type") == "su":
            yield Found(message=f"{each.path}: rope_type 'su' is called 'longrope' today", file="config.json")


@rule("HB309", "two-rope-objects", severity="warning")
def two_rope_objects(subject: Subject) -> Iterator[Found]:
    """rope_scaling and rope_parameters are both given.

    Why: transformers takes rope_scaling and drops rope_parameters in silence.
    Remedy: keep one of them.
    """
    for section in subject.sections:
        old, new = section.values.get("rope_scaling"), section.values.get("rope_parameters")
        if old and new and old != new:
            yield Found(message=f"{section.path}rope_scaling counts, rope_parameters is dropped", file="config.json")


@rule("HB310", "old-rope-name-ignored", severity="warning")
def old_rope_name_ignored(subject: Subject) -> Iterator[Found]:
    """The base is given under an old name that the family does not read in transformers.

    Why: transformers keeps the default base and says nothing, vLLM takes the value: the two answer differently.
    Remedy: write it as rope_theta.
    """
    for section in subject.sections:
        family = family_of(subject, section)
        for name in LEGACY_BASES:
            value = section.values.get(name)
            if value is None or name in HONOURED.get(family or "", ()) or not uses_rope(family):
                continue
            if theta_of(section) in (MISSING, None):
                message = f"{section.path}{name} {value} is ignored by transformers for {family}"
                yield Found(message=message, file="config.json")


@rule("HB311", "old-rotary-share", severity="info")
def old_rotary_share(subject: Subject) -> Iterator[Found]:
    """The share of a head that is rotated is given under an old name.

    Why: today it is called partial_rotary_factor; transformers and vLLM still read the old names.
    Remedy: write partial_rotary_factor when you save the model again.
    """
    for section in subject.sections:
        name = next((n for n in ("rotary_emb_fraction", "rotary_pct") if section.values.get(n) is not None), None)
        if name and "partial_rotary_factor" not in section.values and family_of(subject, section) not in HONOURED:
            message = f"{section.path}{name} {section.values[name]} is read as partial_rotary_factor"
            yield Found(message=message, file="config.json")
