"""Quantization: what the configuration says, what the tensors show, and what the caller asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.checks.base import Found, rule
from hfbench.checks.known import vllm
from hfbench.checks.subject import Subject
from hfbench.checks.tables import table
from hfbench.models.problem import quoted
from hfbench.text import nearest

SIDE_FILE = "hf_quant_config.json"

PACKED = (".qweight", ".weight_packed", ".absmax")
"""Ends of names that only packed tensors have."""

BITS = {"gptq": (2, 3, 4, 8), "awq": (4,)}

FP8 = ("fp8", "fbgemm_fp8", "ptpc_fp8")


@rule("HB230", "quantization-not-in-tensors")
def quantization_not_in_tensors(subject: Subject) -> Iterator[Found]:
    """The configuration names a quantization that the tensors do not show.

    Why: the runtime builds packed layers and finds no tensors for them.
    Remedy: remove quantization_config, or fetch the quantized weights.
    """
    method = method_of(subject) or _side_method(subject)
    if method is None or not subject.complete:
        return
    marks = table("quantization")["marks"].get(method, ())
    if marks and not any(mark in name for name in subject.tensor_names for mark in marks):
        marks = " or ".join(f"*{mark}" for mark in marks)
        message = f"quant_method is {method}, but no tensor is called {marks}"
        yield Found(message=message, file="config.json", evidence={"method": method})
    elif method in FP8 and not any(dtype.startswith("F8_") for dtype in subject.checkpoint.columns.dtypes):
        message = f"quant_method is {method}, but no tensor is of 8 bit floats"
        yield Found(message=message, file="config.json", evidence={"method": method})


@rule("HB231", "quantization-not-in-config")
def quantization_not_in_config(subject: Subject) -> Iterator[Found]:
    """The tensors are quantized, and no configuration says how.

    Why: the packed tensors fit no layer; transformers fills the layers with random values.
    Remedy: fetch the quantization_config of the model.
    """
    if subject.config.quantization or not subject.raw or subject.has("quantize_config.json"):
        return
    columns = subject.checkpoint.columns
    packed = next((name for name in subject.tensor_names if name.endswith(PACKED)), None)
    if packed:
        yield Found(message=f"{quoted(packed)} is packed, and there is no quantization_config", file="config.json")
    elif any(dtype.startswith(("F8_E4", "F8_E5", "F4")) for dtype in columns.dtypes):
        message = "there are tensors of 8 or 4 bit floats, and there is no quantization_config"
        yield Found(message=message, file="config.json", severity="warning")
    elif (whole := next(_whole_numbers(subject), None)) is not None:
        message = f"{quoted(whole)} is of whole numbers, and there is no quantization_config"
        yield Found(message=message, file="config.json")


@rule("HB232", "quantization-conflict")
def quantization_conflict(subject: Subject) -> Iterator[Found]:
    """The quantization asked for is not the one of the model.

    Why: vLLM refuses to start.
    Remedy: leave the argument out; the method is read from the configuration.
    """
    asked, method = subject.options.quantization, method_of(subject) or _side_method(subject)
    told = table("quantization")
    if not asked:
        return
    if method is not None:
        if asked != method and not any({asked, method} <= set(group) for group in told["alike"]):
            message = f"{quoted(asked)} is asked for, the configuration says {quoted(method)}"
            yield Found(message=message, file="config.json", evidence={"asked": asked, "config": method})
    elif asked not in _methods():
        near = nearest(asked, _methods())
        remedy = f"did you mean {near!r}?" if near else ""
        yield Found(message=f"{quoted(asked)} is no method of quantization", remedy=remedy)
    elif asked == "gguf" and subject.checkpoint.format != "gguf":
        yield Found(message="'gguf' is asked for, and the weights are no GGUF files", evidence={"asked": asked})
    elif asked not in (*told["at_loading"], "gguf") and not subject.has("quantize_config.json"):
        message = f"{quoted(asked)} is asked for, and the model is not quantized"
        yield Found(message=message, file="config.json", evidence={"asked": asked})


@rule("HB233", "unknown-quantization")
def unknown_quantization(subject: Subject) -> Iterator[Found]:
    """No runtime knows the method of quantization, or none is named.

    Why: transformers and vLLM refuse the model.
    Remedy: correct quant_method, or use the runtime that the model was made for.
    """
    given = quantization_config(subject)
    if given is None:
        if subject.raw.get("quantization_config") == {}:
            message = "quantization_config is empty, which transformers refuses"
            packed = any(name.endswith(PACKED) for name in subject.tensor_names)
            yield Found(message=message, file="config.json", severity=None if packed else "warning")
        return
    method, known = given.get("quant_method"), _methods()
    if method is None and not _implied(given):
        message = "quantization_config has no quant_method"
        yield Found(message=message, file="config.json", severity="warning")
    elif method is not None and not isinstance(method, str):
        yield Found(message="quant_method is not a text", file="config.json")
    elif method is not None and method.lower() not in known:
        near = nearest(method, known)
        yield Found(
            message=f"quant_method is {quoted(method)}",
            file="config.json",
            remedy=f"did you mean {near!r}?" if near else "",
            severity="warning" if subject.custom else None,
        )
    elif method is not None and method != method.lower():
        message = (
            f"quant_method is {quoted(method)}; vLLM takes it, transformers does not know it and builds plain layers"
        )
        remedy = f"write {method.lower()}"
        yield Found(message=message, file="config.json", remedy=remedy, severity="warning")


@rule("HB234", "quantization-side-file", severity="info")
def quantization_side_file(subject: Subject) -> Iterator[Found]:
    """The quantization is told by hf_quant_config.json.

    Why: config.json has none, so vLLM takes this file; transformers does not read it.
    Remedy: none is needed for vLLM.
    """
    told = subject.json(SIDE_FILE).get("quantization")
    algorithm = told.get("quant_algo") if isinstance(told, dict) else None
    if not isinstance(algorithm, str):
        return
    if algorithm.upper() not in table("quantization")["modelopt"]:
        message = f"quant_algo is {quoted(algorithm)}, which {vllm().title} does not know"
        yield Found(message=message, file=SIDE_FILE, severity="error")
    elif quantization_config(subject) is None:
        yield Found(
            message=f"quantization {algorithm} is taken from here", file=SIDE_FILE, evidence={"algo": algorithm}
        )


@rule("HB236", "quantization-bits")
def quantization_bits(subject: Subject) -> Iterator[Found]:
    """The bits of a packed format are missing or none that it has.

    Why: transformers and vLLM refuse the model.
    Remedy: write the bits that the weights were packed with.
    """
    given = quantization_config(subject) or {}
    allowed = BITS.get(str(method_of(subject)))
    bits = given.get("bits", given.get("w_bit"))
    if allowed and (type(bits) is not int or bits not in allowed):
        shown = "missing" if bits is None else quoted(bits)
        message = f"bits is {shown}, {method_of(subject)} has {', '.join(map(str, allowed))}"
        yield Found(message=message, file="config.json")


def _whole_numbers(subject: Subject) -> Iterator[str]:
    columns = subject.checkpoint.columns
    integers = {number for number, dtype in enumerate(columns.dtypes) if dtype in ("U8", "I8", "U32", "I32")}
    for row, name in enumerate(columns.names if integers else ()):
        if columns.dtype_ids[row] in integers and name.endswith("_proj.weight"):
            yield name


def _methods() -> list[str]:
    told = table("quantization")
    return [*told["known"], *told["earlier"]]


def quantization_config(subject: Subject) -> Mapping[str, Any] | None:
    """The object of config.json that tells it, the root's before a part's."""
    for section in subject.sections:
        for key in ("quantization_config", "compression_config"):
            given = section.values.get(key)
            if isinstance(given, dict) and given:
                return given
    return None


def method_of(subject: Subject) -> str | None:
    """The method that config.json names or implies, in small letters."""
    given = quantization_config(subject)
    if given is None:
        return None
    method = given.get("quant_method") or _implied(given)
    return method.lower() if isinstance(method, str) else None


def _implied(given: Mapping[str, Any]) -> str | None:
    """bitsandbytes is not named in the oldest configurations, compressed-tensors not in compression_config."""
    if given.get("load_in_8bit") is not None or given.get("load_in_4bit") is not None:
        return "bitsandbytes"
    if given.get("config_groups") or given.get("sparsity_config"):
        return "compressed-tensors"
    return "modelopt" if isinstance(given.get("quant_algo"), str) else None


def _side_method(subject: Subject) -> str | None:
    told = subject.json(SIDE_FILE).get("quantization")
    return "modelopt" if isinstance(told, dict) and isinstance(told.get("quant_algo"), str) else None
