"""Steps from model_type and auto_map to the configuration class of transformers and of vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfbench.models.problem import listed, quoted
from hfbench.models.resolution.remote_code import PROCESSOR_ENTRIES, CodeEntry, entry_named, model_entry, read_auto_map
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import Fate, Stage, State, Trace, by_runtime, joined, shown
from hfbench.models.runtimes import TITLES, Names
from hfbench.text import nearest

MISTRAL, MINISTRAL = "mistral", "ministral"
SPECULATORS = "speculators"


def choose_config_class(subject: Subject, trace: Trace, *, mistral: bool) -> None:
    """Tell the configuration class of each runtime, and the repository code it would need."""
    config = subject.config
    if config is None:
        if mistral:
            _take_mistral(trace.fates["vllm"])
            trace.step("model type", "params.json", "Mistral's own names", "vLLM maps them to a configuration")
        return
    entries = read_auto_map(config.get("auto_map"), subject.modules)
    remote = entry_named(entries, "AutoConfig")
    transformers, vllm = trace.fates["transformers"], trace.fates["vllm"]
    transformers_type = type_in_transformers(config)
    vllm_type = _type_in_vllm(config, vllm.names)
    transformers.config_class = _class_of(transformers_type, transformers.names.config_classes)
    in_registry = _class_of(vllm_type, vllm.names.config_classes)
    if mistral:
        _take_mistral(vllm)
    elif in_registry is not None:
        vllm.config_class = in_registry
    elif transformers_type in vllm.names.types_beside or vllm_type in vllm.names.type_of_architecture.values():
        vllm.config_class = _class_of(vllm_type, transformers.names.config_classes)
    _tell_type(config, transformers_type, remote, trace)
    for fate in (transformers,) if mistral else (transformers, vllm):
        if fate.config_class is None:
            runtime = fate.names.runtime
            trace.block(Stage.CONFIGURATION, _why_unknown(config, fate, remote, trace), runtime)
    if not (transformers.config_class or vllm.config_class or remote):
        why = f"{_stated(config)}, and the configuration is made by transformers, which does not know it"
        trace.block(Stage.CONFIGURATION, why, "tensorrt_llm", "megatron_core")
    auto_map = config.get("auto_map")
    if isinstance(auto_map, (list, str)) and "AutoConfig" in auto_map:
        trace.block(Stage.CONFIGURATION, "auto_map is not an object, and names AutoConfig", "transformers", "vllm")
    _tell_code(subject, entries, remote, trace)


def tokenizer_entry(subject: Subject) -> CodeEntry | None:
    """The tokenizer's entry of an auto_map, whose older form is the bare pair of slow and fast class."""
    auto_map = subject.tokenizer_config.get("auto_map")
    auto_map = {"AutoTokenizer": auto_map} if isinstance(auto_map, list) else auto_map
    return entry_named(read_auto_map(auto_map, subject.modules), "AutoTokenizer")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def type_in_transformers(config: Mapping[str, Any]) -> str | None:
    """transformers reads `mistral` with layer_types as Ministral."""
    model_type = _text(config.get("model_type"))
    return MINISTRAL if model_type == MISTRAL and "layer_types" in config else model_type


def _type_in_vllm(config: Mapping[str, Any], names: Names) -> str | None:
    """vLLM fills a missing model_type in from speculators_config or from a few architectures."""
    if config.get("model_type") is not None:
        return _text(config["model_type"])
    if config.get("speculators_config") is not None:
        return SPECULATORS
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    return names.type_of_architecture.get(first) if isinstance(first, str) else None


def _class_of(model_type: str | None, classes: Mapping[str, str]) -> str | None:
    return classes.get(model_type or "")


def _take_mistral(fate: Fate) -> None:
    fate.config_class = "PreTrainedConfig"
    fate.notes.append("the configuration is made of params.json, with what it lacks from config.json")


def _tell_type(config: Mapping[str, Any], model_type: str | None, remote: CodeEntry | None, trace: Trace) -> None:
    fates = [trace.fates["transformers"], trace.fates["vllm"]]
    found = shown(config["model_type"]) if "model_type" in config else "none told"
    if model_type == MINISTRAL and config.get("model_type") == MISTRAL:
        found += ", and layer_types: transformers reads it as 'ministral'"
    classes = {TITLES[fate.names.runtime]: fate.config_class or "no class of its own" for fate in fates}
    leads = [by_runtime(classes)]
    known = [fate.config_class is not None for fate in fates]
    if not any(known) and remote is None:
        leads.append(_suggestion(config, trace.fates["transformers"].names))
    state: State = "ok" if all(known) else "warning" if any(known) or remote else "error"
    trace.step(
        "model type",
        "config.json: model_type, in the lists of each runtime",
        found,
        "; ".join(filter(None, leads)),
        state,
    )


def _stated(config: Mapping[str, Any]) -> str:
    return f"model_type is {shown(config['model_type'])}" if "model_type" in config else "no model_type"


def _suggestion(config: Mapping[str, Any], names: Names) -> str:
    """What model_type was probably meant, from the architectures or from a name alike."""
    model_type = config.get("model_type")
    architectures = config.get("architectures")
    for name in architectures if isinstance(architectures, list) else []:
        likely = [key for key, task in names.task_models.items() if task == name and key != model_type]
        if likely:
            return f"the architecture {quoted(name)} belongs to the model_type {joined(list(map(repr, likely)), 'or')}"
    near = nearest(model_type, names.config_classes) if isinstance(model_type, str) and len(model_type) < 100 else None
    return f"did you mean {near!r}?" if near else ""


def _why_unknown(config: Mapping[str, Any], fate: Fate, remote: CodeEntry | None, trace: Trace) -> str:
    title = fate.names.title
    if remote is not None and remote.fault:
        return f"{title}: the auto_map entry {remote.entry} is {remote.reference}, which {remote.fault}"
    if remote is not None:
        source = f"the repository {quoted(remote.repository)}" if remote.repository else "this repository"
        files = listed(remote.files, 5) or listed(remote.missing)
        flag = "--trust-remote-code" if fate.names.runtime == "vllm" else "trust_remote_code=True"
        return (
            f"{title} needs remote code: {_stated(config)}, and the class {quoted(remote.reference)} comes from "
            f"{source}. Give {flag} after reading {files}"
        )
    if config.get("model_type") is None and "model_type" not in config:
        hint = _suggestion(config, trace.fates["transformers"].names)
        return f"config.json has no model_type, so {title} cannot tell the architecture" + (f"; {hint}" if hint else "")
    beside = fate.names.version_beside
    newer = bool(beside) and _text(config.get("model_type")) in trace.fates["transformers"].names.config_classes
    if newer:
        return (
            f"unknown model_type {shown(config['model_type'])}: {title} runs with transformers {beside} at most, "
            "which does not know it yet"
        )
    hint = _suggestion(config, trace.fates["transformers"].names)
    return f"unknown model_type {shown(config.get('model_type'))}: {title} does not know it" + (
        f"; {hint}" if hint else ""
    )


def _tell_code(subject: Subject, entries: list[CodeEntry], remote: CodeEntry | None, trace: Trace) -> None:
    fates = [trace.fates["transformers"], trace.fates["vllm"]]
    tokenizer = tokenizer_entry(subject)
    wanted = [each for each in (remote, model_entry(entries), tokenizer) if each]
    beside = read_auto_map(subject.processor_config.get("auto_map"), subject.modules)
    wanted += [each for each in (*entries, *beside) if each.entry in PROCESSOR_ENTRIES]
    looked = "auto_map of config.json, tokenizer_config.json and the processor's files"
    if not wanted:
        odd = next((each for each in entries if each.fault), None)
        found = f"{odd.entry}: {odd.fault}" if odd else "no auto_map"
        trace.step("remote code", looked, found, "no file of the repository would run", "warning" if odd else "ok")
        return
    run = sorted({name for each in wanted for name in each.files if each.repository is None})
    missing = sorted({name for each in wanted for name in each.missing})
    elsewhere = sorted({each.repository for each in wanted if each.repository})
    told = [f"under trust_remote_code these files would run: {listed(run, 12)}"] if run else []
    told += [f"code comes from {joined([quoted(name) for name in elsewhere])}"] if elsewhere else []
    told += [f"not there: {listed(missing)}"] if missing else []
    needing = [TITLES[fate.names.runtime] for fate in fates if fate.config_class is None]
    if needing and remote:
        trace.note("the configuration's class comes from the repository: trust_remote_code is needed", "tensorrt_llm")
    why = f"needed by {joined(needing)}" if needing and remote else "present, not needed: library classes are used"
    if not needing and remote:
        why += "; trust_remote_code=True would run it all the same"
    state: State = "error" if missing and len(needing) == len(fates) else "warning" if needing or missing else "note"
    details = {"entries": [each.told() for each in wanted], "files": run, "missing": missing, "repositories": elsewhere}
    trace.step("remote code", looked, "; ".join(told), why, state, **details)
