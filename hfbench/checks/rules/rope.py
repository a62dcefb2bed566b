"""Rotary position embeddings: what the settings say, and what the runtimes make of them."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.known import default_theta, uses_rope, vllm
from hfbench.checks.rope import MISSING, OF_VLLM, RENAMED, REQUIRED, Rope, family_of, ropes, theta_of
from hfbench.checks.subject import Section, Subject
from hfbench.checks.tensor_names import PLAIN
from hfbench.models.problem import listed, quoted
from hfbench.text import nearest

ALWAYS_DEFAULT = frozenset(
    [
        "gpt_neox",
        "gpt_neox_japanese",
        "gptj",
        "falcon",
        "codegen",
        "esm",
        "roformer",
        "chatglm",
        "phi",
        "persimmon",
        "bert",
        "nomic_bert",
        "esmc",
        "gemma",
        "gemma2",
        "recurrent_gemma",
        "stablelm",
        "olmo",
        "starcoder2",
        "phimoe",
    ]
)
"""Families whose published models all use the default base."""

NUMBERS = (
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
    "rope_theta",
    "beta_fast",
    "beta_slow",
    "attention_factor",
    "mscale",
    "mscale_all_dim",
)
"""Keys of the scaling that must be numbers above zero."""

LOOSE = frozenset(NUMBERS[5:])
"""Those that may be of any size, and null."""

USUAL = {
    "llama": "500,000 for Llama 3, 10,000 for Llama 2",
    "mistral": "1,000,000 since version 0.2",
    "mixtral": "1,000,000",
    "qwen2": "1,000,000",
    "qwen2_moe": "1,000,000",
    "qwen3": "1,000,000",
    "qwen3_moe": "1,000,000",
}


@rule("HB301", "no-rope-theta", severity="warning")
def no_rope_theta(subject: Subject) -> Iterator[Found]:
    """rope_theta is missing or null.

    Why: a missing one becomes the default of the family in silence, a null stays and building the model fails.
    Remedy: write the rope_theta that the model was trained with.
    """
    for section in subject.sections:
        theta = theta_of(section)
        family = family_of(subject, section)
        if theta is None and uses_rope(family):
            yield Found(message=f"{section.path}rope_theta is null", file="config.json", severity="error")
        elif theta is MISSING and section == subject.text and not subject.custom:
            default = default_theta(family)
            if default is None or family in ALWAYS_DEFAULT or subject.raw.get("position_embedding_type") == "absolute":
                continue
            usual = f"; usual for {family}: {USUAL[family]}" if family in USUAL else ""
            message = f"there is no {section.path}rope_theta, transformers takes {default:,.0f}{usual}"
            yield Found(message=message, file="config.json", evidence={"default": default})


@rule("HB302", "rope-types-conflict")
def rope_types_conflict(subject: Subject) -> Iterator[Found]:
    """type and rope_type name different kinds of scaling.

    Why: transformers takes rope_type in silence, vLLM refuses the model.
    Remedy: keep rope_type only.
    """
    for each in ropes(subject):
        old, new = each.values.get("type"), each.values.get("rope_type")
        if isinstance(old, str) and isinstance(new, str) and old != new and RENAMED.get(old) != new:
            message = f"{each.path}: type is {quoted(old)}, rope_type is {quoted(new)}; transformers takes the latter"
            yield Found(message=message, file="config.json", evidence={"type": old, "rope_type": new})


@rule("HB303", "mrope-without-sections")
def mrope_without_sections(subject: Subject) -> Iterator[Found]:
    """The type is mrope, and there is no mrope_section.

    Why: vLLM refuses it, and transformers has no such type any more.
    Remedy: add mrope_section, the share of each position axis.
    """
    for each in ropes(subject):
        if "mrope" in (each.values.get("type"), each.values.get("rope_type")) and not each.values.get("mrope_section"):
            yield Found(message=f"{each.path} has no mrope_section", file="config.json")


@rule("HB304", "unknown-rope-type")
def unknown_rope_type(subject: Subject) -> Iterator[Found]:
    """No runtime knows the type of scaling.

    Why: transformers only logs a line, and building the model fails with a KeyError.
    Remedy: write one of default, linear, dynamic, yarn, longrope, llama3.
    """
    for each in ropes(subject):
        kind = each.kind
        given = next((each.values[key] for key in ("rope_type", "type") if key in each.values), MISSING)
        if kind is None and given is not MISSING:
            what = "null" if given is None else "not a text"
            yield Found(message=f"{each.path}: the type is {what}", file="config.json")
        elif kind is not None and not subject.custom and (of_vllm := _unknown(subject, each, kind, given)) is not None:
            near = nearest(kind, REQUIRED)
            knows = f"{vllm().title} only" if of_vllm else "nobody"
            yield Found(
                message=f"{each.path}: the type {quoted(given)} is known to {knows}",
                file="config.json",
                remedy=f"did you mean {near!r}?" if near and near != kind else "",
                severity="warning" if of_vllm else None,
            )


@rule("HB305", "rope-keys-missing")
def rope_keys_missing(subject: Subject) -> Iterator[Found]:
    """The scaling lacks a key that its type needs.

    Why: transformers fails with a KeyError when it reads the configuration.
    Remedy: add the keys, with the values that the model was trained with.
    """
    for each in ropes(subject):
        lacking = [key for key in REQUIRED.get(each.kind or "", ()) if key not in each.values]
        original = ("original_max_position_embeddings", "max_position_embeddings")
        if each.kind in ("yarn", "llama3", "longrope") and not any(
            key in where for key in original for where in (each.values, each.section.values, subject.raw)
        ):
            lacking.append(original[0])
        if lacking:
            message = f"{each.path}: {each.kind} needs {listed(lacking)}"
            yield Found(message=message, file="config.json", evidence={"type": each.kind, "missing": lacking})


@rule("HB306", "rope-value-wrong")
def rope_value_wrong(subject: Subject) -> Iterator[Found]:
    """A number of the scaling is null, a text, or out of range.

    Why: transformers logs a line at most, and the model fails or computes nonsense.
    Remedy: write the number that the model was trained with.
    """
    for each in ropes(subject):
        for key in NUMBERS:
            if key not in each.values or (key == "rope_theta" and each.values[key] is None):
                continue  # a null base is told by its own rule
            value = each.values[key]
            if value is None and each.kind in (None, "longrope", "default"):
                continue
            if key in LOOSE:
                if value is not None and type(value) not in (int, float):
                    yield Found(message=f"{each.path}.{key} is {_shown(value)}, not a number", file="config.json")
            elif not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
                message = f"{each.path}.{key} is {_shown(value)}, a number above 0 is needed"
                yield Found(message=message, file="config.json")
            elif key == "factor" and value < 1:
                message = f"{each.path}.factor is {value:g}, below 1 it shortens the context"
                yield Found(message=message, file="config.json", severity="warning")
        yield from _llama3_order(each)
        yield from _long_lists(subject, each)
    for section in subject.sections:
        theta = theta_of(section)
        if isinstance(theta, (int, float)) and not isinstance(theta, bool) and not theta > 0 and not _nested(section):
            yield Found(message=f"{section.path}rope_theta is {theta:g}", file="config.json")


@rule("HB307", "rope-type-missing", severity="warning")
def rope_type_missing(subject: Subject) -> Iterator[Found]:
    """The scaling has values but no type.

    Why: transformers takes it for the default, which scales nothing; vLLM refuses it.
    Remedy: add rope_type, or remove the object.
    """
    for each in ropes(subject):
        scaling = set(each.values) - {"rope_theta", "partial_rotary_factor", "mrope_section", "mrope_interleaved"}
        if "rope_type" not in each.values and "type" not in each.values and scaling:
            message = f"{each.path} has {listed(sorted(scaling))} and no rope_type"
            yield Found(message=message, file="config.json")


@rule("HB312", "context-holds-scaling", severity="info")
def context_holds_scaling(subject: Subject) -> Iterator[Found]:
    """max_position_embeddings is the length after scaling.

    Why: multiplying it by the factor once more, as some tools do, promises a context that the model does not have.
    Remedy: take the context as it stands.
    """
    for each in ropes(subject):
        factor = each.values.get("factor")
        original = each.values.get("original_max_position_embeddings")
        if each.kind not in ("yarn", "llama3", "longrope", "deepseek_yarn") or type(original) is not int:
            continue
        context = each.section.values.get("max_position_embeddings", subject.config.context)
        if type(context) is int and isinstance(factor, (int, float)) and original < context:
            message = f"the context is {context:,} tokens; it holds the factor {factor:g} over {original:,} already"
            yield Found(message=message, file="config.json", evidence={"context": context, "original": original})


def _nested(section: Section) -> bool:
    return any(isinstance(section.values.get(key), dict) for key in ("rope_parameters", "rope_scaling"))


def _llama3_order(rope: Rope) -> Iterator[Found]:
    low, high = rope.values.get("low_freq_factor"), rope.values.get("high_freq_factor")
    if rope.kind == "llama3" and isinstance(low, (int, float)) and isinstance(high, (int, float)) and high <= low:
        message = f"{rope.path}: high_freq_factor {high:g} is not above low_freq_factor {low:g}"
        yield Found(message=message, file="config.json", severity="warning")


def _long_lists(subject: Subject, rope: Rope) -> Iterator[Found]:
    if rope.kind != "longrope":
        return
    lengths = set()
    for key in ("short_factor", "long_factor"):
        value = rope.values.get(key)
        if key not in rope.values:
            continue  # another rule tells
        if not isinstance(value, list) or not all(type(each) in (int, float) for each in value):
            yield Found(message=f"{rope.path}.{key} is not a list of numbers", file="config.json")
        else:
            lengths.add(len(value))
    if len(lengths) > 1:
        yield Found(message=f"{rope.path}: short_factor and long_factor differ in length", file="config.json")
    elif lengths and (pairs := _pairs(subject)) is not None and lengths != {pairs}:
        found = f"{rope.path}: short_factor has {lengths.pop():,} numbers, the head turns {pairs:,} pairs"
        yield Found(message=found, file="config.json")


def _pairs(subject: Subject) -> int | None:
    """Pairs that the rotary embedding turns in one head; None where the configuration does not tell for certain."""
    config = subject.config
    if config.model_type not in (*PLAIN, "phi3") or not config.head_dim:
        return None
    share = subject.text.values.get("partial_rotary_factor", 1.0)
    return int(config.head_dim * share) // 2 if type(share) in (int, float) and 0 < share <= 1 else None


def _unknown(subject: Subject, rope: Rope, kind: str, given: object) -> bool | None:
    """None for a type that transformers can build; else whether vLLM can."""
    plain = family_of(subject, rope.section) in PLAIN
    if kind in OF_VLLM or (plain and isinstance(given, str) and given in RENAMED):
        return True
    return False if kind not in REQUIRED or (plain and kind == "axial") else None


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    return (
        quoted(value)
        if isinstance(value, str)
        else "a list or an object"
        if not isinstance(value, (int, float))
        else f"{value:g}"
    )
