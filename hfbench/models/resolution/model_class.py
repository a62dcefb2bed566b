"""Step from architectures to the model class of each runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfbench.models.problem import listed, quoted
from hfbench.models.resolution.remote_code import model_entry, read_auto_map
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import Stage, State, Trace, by_runtime
from hfbench.models.runtimes import TITLES, Names

SUFFIXES = (
    "ForCausalLM",
    "ForConditionalGeneration",
    "ChatModel",
    "LMHeadModel",
    "ForTextEncoding",
    "EmbeddingModel",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForAudioClassification",
    "ForImageClassification",
    "ForVideoClassification",
    "ClassificationModel",
    "ForRewardModeling",
    "RewardModel",
    "Model",
)
"""Endings by which vLLM finds the generating class beneath a converted one, in its order."""

MOST_NAMED = 100
"""Architectures of one configuration that are looked at; real ones name one or two."""

CONVERTED = SUFFIXES[SUFFIXES.index("ForTextEncoding") :]


def choose_model_class(subject: Subject, trace: Trace, *, mistral: bool) -> None:
    """Tell the class that each runtime would build, and block those that have none."""
    config = subject.config
    if config is None and not mistral:
        return
    config = config or {}
    named = _named(config)
    transformers, vllm = trace.fates["transformers"].names, trace.fates["vllm"].names
    model_type = config.get("model_type") if isinstance(config.get("model_type"), str) else ""
    base = transformers.base_models.get(model_type or "")
    state: State = "ok"
    why: list[str] = []
    if not named:
        state = "warning"
        why.append(
            f"would be loaded as {base}, without a word; in vLLM a pooling model, no LM head"
            if base
            else "vLLM asks for hf_overrides with architectures"
        )
        trace.note("architectures is missing" + (f": {why[0]}" if base else ""), "transformers", "vllm")
    trace.fates["transformers"].model_class = _in_transformers(named, model_type or "", transformers, trace)
    names = named or ([base] if base else [])
    remote = model_entry(read_auto_map(config.get("auto_map"), subject.modules)) is not None
    _choose_in_vllm([_of_mistral(subject.params or {})] if mistral else names, remote, vllm, transformers, trace)
    _choose_in_others(names, trace)
    classes = by_runtime({TITLES[runtime]: fate.model_class or "none" for runtime, fate in trace.fates.items()})
    if state == "ok" and not all(fate.model_class for fate in trace.fates.values()):
        state = "note" if trace.fates["transformers"].model_class or vllm.architectures.get(names[0]) else "warning"
    looked = "config.json: architectures, in the lists of each runtime"
    trace.step("architectures", looked, listed(named) or "none told", "; ".join([*why, classes]), state)


def _named(config: Mapping[str, Any]) -> list[str]:
    value = config.get("architectures")
    if isinstance(value, str):
        return [value]
    return [each for each in value[:MOST_NAMED] if isinstance(each, str)] if isinstance(value, list) else []


def _in_transformers(named: list[str], model_type: str, names: Names, trace: Trace) -> str | None:
    """The Auto classes go by model_type; architectures is what pipelines and vLLM go by."""
    first = next((name for name in named if name in names.architectures), None)
    by_type = names.task_models.get(model_type) or names.base_models.get(model_type)
    if not named:
        return names.base_models.get(model_type)
    if first is None and by_type is not None:
        trace.note(f"{quoted(named[0])} is no class of transformers: Auto classes build {by_type}", "transformers")
    return first or by_type


def _of_mistral(params: Mapping[str, Any]) -> str:
    """The architecture vLLM reads out of params.json."""
    moe, multimodal = params.get("moe"), params.get("multimodal")
    parts = multimodal if isinstance(multimodal, dict) else {}
    if parts.get("vision_encoder_args") or params.get("vision_encoder"):
        return "PixtralForConditionalGeneration"
    whisper = parts.get("whisper_model_args")
    if isinstance(whisper, dict) and whisper.get("encoder_args"):
        return "VoxtralForConditionalGeneration"
    if params.get("model_type") == "mamba":
        return "Mamba2ForCausalLM"
    if isinstance(moe, dict) and moe:
        return "MistralLarge3ForCausalLM" if moe.get("num_shared_experts") else "MixtralForCausalLM"
    return "MistralForCausalLM"


def _choose_in_vllm(named: list[str], remote: bool, names: Names, transformers: Names, trace: Trace) -> None:
    fate = trace.fates["vllm"]
    if not named:
        trace.block(Stage.MODEL, f"{names.title} cannot choose a model class: architectures is missing", "vllm")
        return
    for name in named:
        if found := names.architectures.get(name) or names.architectures.get(_unconverted(name, names)):
            fate.model_class = found
            return
    first = named[0]
    if first in transformers.architectures and first not in transformers.without_backend:
        fate.model_class = "TransformersForCausalLM"
        until = names.previous.get(first)
        gone = f" (had its own until v{until})" if until else ""
        trace.note(f"{names.title} has no class for {quoted(first)}{gone}: it runs through transformers' own", "vllm")
    elif remote and first not in transformers.architectures:
        fate.model_class = "TransformersForCausalLM"
        trace.note(f"the class {quoted(first)} comes from the repository, through vLLM's transformers backend", "vllm")
        trace.block(Stage.MODEL, f"{names.title} needs --trust-remote-code for the model class {quoted(first)}", "vllm")
    else:
        trace.block(Stage.MODEL, _why_unsupported(named, names), "vllm")


def _unconverted(name: str, names: Names) -> str:
    """A pooling or classifying class that vLLM makes from a generating one of the same family."""
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)
    if suffix is None or suffix not in CONVERTED:
        return ""
    stem = name.removesuffix(suffix)
    return next((stem + other for other in SUFFIXES if stem + other in names.architectures), "")


def _why_unsupported(named: list[str], names: Names) -> str:
    for name in named:
        if until := names.previous.get(name):
            return f"{quoted(name)} was supported in vLLM until v{until}; use an older version"
        if plugin := names.plugins.get(name):
            return f"{quoted(name)} needs a vLLM plugin: {plugin}"
    return f"unknown architecture {listed(named)}: {names.title} has no class of that name"


def _choose_in_others(named: list[str], trace: Trace) -> None:
    for runtime in ("tensorrt_llm", "megatron_core"):
        fate = trace.fates[runtime]
        fate.model_class = next((name for name in named if name in fate.names.architectures), None)
        if fate.model_class is None:
            which = listed(named) if named else "none is named"
            how = "no model of that architecture" if runtime == "tensorrt_llm" else "no bridge for that architecture"
            trace.block(Stage.CONFIGURATION, f"{fate.names.title} has {how}: {which}", runtime)
            continue
        fate.config_class = fate.model_class
