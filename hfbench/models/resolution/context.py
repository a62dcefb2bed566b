"""Step of the context length, as vLLM derives it by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfbench.models.resolution.rope_rules import layers_of
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import State, Trace, joined, shown
from hfbench.models.runtimes import rules


def read_context(subject: Subject, rope: Mapping[str, Any] | None, trace: Trace) -> None:
    """Tell the longest context vLLM allows by default, and how it comes about."""
    if subject.config is None:
        return
    section = dict(subject.sections())[_innermost(subject)]
    prefix = _innermost(subject)
    length, key = _length(section)
    looked = f"config.json: {prefix}{joined(list(rules('context')['keys'][:3]), 'or')} and their like"
    if length is None:
        found = f"no key tells it; vLLM assumes {rules('context')['assumed']:,}"
        trace.step("context", looked, found, "give --max-model-len", "warning")
        return
    whys: list[str] = []
    scaled = _scaled(length, section, rope, whys)
    limit = subject.tokenizer_config.get("model_max_length")
    if isinstance(limit, (int, float)) and not isinstance(limit, bool) and 0 < limit < scaled:
        whys.append(f"the tokenizer says {limit:,}; vLLM heeds that for pooling models only, others take the smaller")
    state: State = "note" if whys else "ok"
    trace.step("context", looked, f"{scaled:,} tokens ({prefix}{key} {length:,})", "; ".join(whys), state)


def _innermost(subject: Subject) -> str:
    """The prefix of the language part that tells a context, the root's when none does."""
    told = [prefix for prefix, section in subject.sections() if prefix and _length(section)[0] is not None]
    return told[-1] if told else ""


def _length(section: Mapping[str, Any]) -> tuple[int | None, str]:
    found = [
        (int(section[key]), key)
        for key in rules("context")["keys"]
        if isinstance(section.get(key), (int, float))
        and not isinstance(section[key], bool)
        and 0 < section[key] < 2**62
    ]
    if not found:
        return None, ""
    return next((each for each in found if each[1] == rules("context")["wins"]), min(found, key=lambda each: each[0]))


def _scaled(length: int, section: Mapping[str, Any], rope: Mapping[str, Any] | None, whys: list[str]) -> int:
    """vLLM multiplies by the factor of linear and dynamic scaling; yarn, llama3 and longrope tell the scaled length."""
    for parameters in layers_of(dict(rope or {})):
        kind, factor = parameters.get("rope_type"), parameters.get("factor")
        if kind == "longrope" and type(section.get("original_max_position_embeddings")) is int:
            original: int = section["original_max_position_embeddings"]
            whys.append(f"vLLM starts at original_max_position_embeddings for longrope; up to {length:,} on request")
            return original
        if not isinstance(factor, (int, float)) or isinstance(factor, bool) or not 0 < factor < 2**31:
            continue
        if kind in rules("context")["not_scaled"]:
            whys.append(f"{shown(kind)} tells the scaled length already: the factor {factor} is not applied again")
        elif not any(word in str(section.get("model_type")) for word in rules("context")["scaled_already"]):
            whys.append(f"{length:,} times the factor {factor} of {shown(kind)}")
            return int(length * factor)
    return length
