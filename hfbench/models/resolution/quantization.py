"""Step of the quantization: which file tells it, which scheme it is, and which runtime takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hfbench.models.json_text import JsonError, cut_depth, read_object
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import Stage, State, Trace, shown
from hfbench.models.runtimes import Runtime, rules

SIDE_FILE = "hf_quant_config.json"
OTHER_SIDE_FILES = ("quantize_config.json", "quant_config.json")
"""Written by older GPTQ and AWQ tools; vLLM reads them only when the method is given."""

ROOT_KEYS = ("quantization_config", "compression_config")


@dataclass(frozen=True, slots=True)
class Quantization:
    """What one source says. `method` is the name vLLM goes by."""

    source: str
    given: Mapping[str, Any]
    method: str | None
    fault: str = ""


def read_quantization(subject: Subject, trace: Trace) -> None:
    """Tell source and scheme, and block the runtimes that do not take them."""
    looked = f"config.json: {' and '.join(ROOT_KEYS)}, {SIDE_FILE}"
    found = quantization_of(subject)
    if found is None:
        beside = next((name for name in OTHER_SIDE_FILES if name in subject.by_name), None)
        why = f"{beside} is read only when --quantization names the method" if beside else "weights are as they stand"
        trace.step("quantization", looked, "none told", why, "note" if beside else "ok")
        return
    told = f"{found.source}: {_scheme(found)}"
    if found.fault:
        trace.step("quantization", looked, told, found.fault, "error")
        trace.block(Stage.MODEL, f"quantization: {found.fault}", "vllm")
        return
    whys = [why for runtime in ("transformers", "vllm") if (why := _judged(found, runtime, trace))]
    state: State = "warning" if whys else "ok"
    why = "; ".join(whys) or f"vLLM loads it as {shown(found.method)[1:-1]}"
    trace.step("quantization", looked, told, why, state, source=found.source, method=found.method)


def quantization_of(subject: Subject) -> Quantization | None:
    """What tells of a quantization, vLLM's order: the configuration, else ModelOpt's file beside it; None for none."""
    return _from_config(subject) or _from_side_file(subject)


def _from_config(subject: Subject) -> Quantization | None:
    for prefix, section in subject.sections():
        for key in ROOT_KEYS:
            value = section.get(key)
            if value is None:
                continue
            source = f"config.json: {prefix}{key}"
            if not isinstance(value, dict):
                return Quantization(source, {}, None, f"{prefix}{key} is {shown(value)}, an object is needed")
            return _read(source, value)
    return None


def _from_side_file(subject: Subject) -> Quantization | None:
    if SIDE_FILE not in subject.by_name:
        return None
    try:
        given = read_object(subject.folder / SIDE_FILE, subject.folder).value
    except JsonError as error:
        return Quantization(SIDE_FILE, {}, None, str(error.problem(where=SIDE_FILE)))
    cut_depth(given)
    return _read(SIDE_FILE, given)


def _read(source: str, given: Mapping[str, Any]) -> Quantization:
    """vLLM's reading: ModelOpt's files name an algorithm, all others a method."""
    producer, nested = given.get("producer"), given.get("quantization")
    by_modelopt = isinstance(producer, dict) and producer.get("name") == "modelopt"
    if by_modelopt and isinstance(nested, dict) and nested.get("quant_algo") is not None:
        algorithm = nested["quant_algo"]
        method = rules("quantization")["modelopt"].get(algorithm.upper()) if isinstance(algorithm, str) else None
        fault = "" if method else f"ModelOpt's algorithm {shown(nested['quant_algo'])} is not known to vLLM"
        return Quantization(source, given, method, fault)
    method = given.get("quant_method")
    if isinstance(method, str) and method:
        return Quantization(source, given, method.lower().replace("compressed_tensors", "compressed-tensors"))
    if given.get("load_in_4bit") or given.get("load_in_8bit"):
        return Quantization(source, given, "bitsandbytes")
    return Quantization(source, given, None)


def _scheme(found: Quantization) -> str:
    """The method with what its configuration says of bits, groups and formats."""
    given = found.given
    nested = given.get("quantization")
    inner: Mapping[str, Any] = nested if isinstance(nested, dict) else {}
    words = [shown(found.method)[1:-1] if found.method else "no method named"]
    for key in (
        "quant_algo",
        "fmt",
        "format",
        "bits",
        "w_bit",
        "group_size",
        "weight_block_size",
        "kv_cache_quant_algo",
    ):
        value = given.get(key, inner.get(key))
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            words.append(f"{key} {shown(value)}")
        elif isinstance(value, list) and value and all(type(each) is int for each in value[:4]):
            words.append(f"{key} {'x'.join(map(str, value[:4]))}")
    return ", ".join(words)


def _judged(found: Quantization, runtime: Runtime, trace: Trace) -> str:
    """What a runtime does with the method, empty when it simply loads it."""
    title = trace.fates[runtime].names.title
    if found.method is None and runtime == "vllm":
        return ""
    if found.method is None:
        why = f"{title} needs quant_method in {found.source}" if found.source.startswith("config") else ""
        if why:
            trace.block(Stage.MODEL, why, runtime)
        return why
    if found.source == SIDE_FILE and runtime == "transformers":
        why = f"{title} does not read {SIDE_FILE}: the packed weights would be taken as they stand"
        trace.note(why, runtime)
        return why
    if found.method in rules("quantization")["methods"][runtime]:
        return ""
    if runtime == "transformers":
        why = f"{title} does not know the method {shown(found.method)}: it logs that and loads without quantization"
        trace.note(why, runtime)
        return why
    why = f"{title} does not know the quantization method {shown(found.method)}"
    trace.block(Stage.MODEL, why, runtime)
    return why
