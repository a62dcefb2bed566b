"""Packed tensors of GPTQ and AWQ: whether their shapes are those that the configuration says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.checks.base import Found, rule
from hfbench.checks.rules.quantization import method_of, quantization_config
from hfbench.checks.subject import Subject
from hfbench.models.columns import Shape
from hfbench.models.problem import quoted

WORD = 32
"""Bits of one element of a qweight."""

LAYOUTS = {"gptq": ("checkpoint_format", (None, "gptq", "gptq_v2")), "awq": ("version", (None, "gemm", "GEMM"))}
"""The key that tells of other layouts, which are not judged here, and its values for the usual one."""

PER_LAYER = ("dynamic", "extra_config", "is_marlin_format")
"""Keys that give single layers other bits or another layout."""

MOST_SHOWN = 5


@rule("HB237", "packing-differs")
def packing_differs(subject: Subject) -> Iterator[Found]:
    """The packed tensors are of other bits, groups or axes than the configuration says.

    Why: the layers that a runtime builds do not fit the tensors, or it unpacks them into other weights.
    Remedy: fetch the configuration and the weights from the same revision.
    """
    given, method = quantization_config(subject) or {}, method_of(subject)
    if method not in LAYOUTS:
        return
    group = given.get("group_size", given.get("q_group_size"))
    if group is not None and (type(group) is not int or group < -1 or group == 0):
        message = f"group_size is {quoted(group)}, a number above 0 is needed, or -1 for one group"
        yield Found(message=message, file="config.json")
        return
    key, usual = LAYOUTS[method]
    if given.get(key) not in usual or any(given.get(each) for each in PER_LAYER):
        return
    told = 0
    for layer, shapes in _layers(subject):
        if told < MOST_SHOWN and (fault := _fault(method, shapes, given)) is not None:
            told += 1
            yield Found(message=f"{quoted(layer)} {fault}", file="config.json", evidence={"layer": layer})


def _layers(subject: Subject) -> Iterator[tuple[str, Mapping[str, Shape]]]:
    """Each packed layer with the shapes of its parts."""
    columns, found = subject.checkpoint.columns, dict[str, dict[str, Shape]]()
    for row, name in enumerate(columns.names):
        layer, _, part = name.rpartition(".")
        if part in ("qweight", "scales", "g_idx"):
            found.setdefault(layer, {})[part] = columns.shapes[columns.shape_ids[row]]
    for layer, parts in found.items():
        if len(parts.get("qweight", ())) == 2 and len(parts.get("scales", ())) == 2:
            yield layer, parts


def _fault(method: str, parts: Mapping[str, Shape], given: Mapping[str, Any]) -> str | None:
    """What the shapes of one layer say against the configuration."""
    (rows, columns), (groups, outputs) = parts["qweight"], parts["scales"]
    bits, size = given.get("bits", given.get("w_bit")), given.get("group_size", given.get("q_group_size"))
    across = "awq" if columns != outputs else "gptq" if "g_idx" in parts or columns != rows else None
    if across is not None and across != method:
        return f"is packed as {across} does, quant_method is {method}"
    if type(bits) is not int or bits <= 0 or not rows or not outputs:
        return None
    inputs = rows if method == "awq" else parts["g_idx"][0] if parts.get("g_idx") else rows * WORD // bits
    packed, whole = (columns, outputs) if method == "awq" else (rows, inputs)
    if packed * WORD != whole * bits:
        return f"is packed in {packed * WORD / whole:g} bits a weight, bits is {bits}" if whole else None
    wanted = 1 if size == -1 else -(-inputs // size) if size else groups
    if groups != wanted:
        return f"has {groups:,} groups for {inputs:,} inputs, group_size is {size}"
    return None
