"""Quantized checkpoints: what would have to happen before they can be divided among ranks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hfbench.convert.boxes import TensorSpec
from hfbench.errors import UsageError
from hfbench.models.problem import quoted

UNPACKED = "load it with transformers, call dequantize() and save it, or convert the model it was made from"
REMEDIES = {
    "gptq": f"its 4-bit groups have to be unpacked in float first: {UNPACKED}",
    "awq": f"its 4-bit groups have to be unpacked and its scales multiplied back first: {UNPACKED}",
    "bitsandbytes": f"its blocks have to be dequantized first: {UNPACKED}",
    "compressed-tensors": f"it has to be decompressed first: {UNPACKED}",
    "mxfp4": f"its blocks of 32 values have to be multiplied with their scales first: {UNPACKED}",
    "torchao": f"its tensors have to be dequantized first: {UNPACKED}",
    "fbgemm_fp8": f"its rows have to be multiplied with their scales first: {UNPACKED}",
}
PACKED = re.compile(
    r"\.(qweight|qzeros|g_idx|weight_packed|weight_zero_point|absmax|quant_map|weight_blocks|SCB)$|_blocks$"
)
BLOCK_SCALES = "_scale_inv"
EIGHT_BITS = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")


def method_of(config: Mapping[str, Any]) -> str:
    """The quantization method of a configuration, empty when there is none."""
    told = config.get("quantization_config") or config.get("compression_config")
    if not isinstance(told, Mapping):
        return ""
    return str(told.get("quant_method") or ("bitsandbytes" if told.get("load_in_4bit") else "unknown"))


def refuse_quantized(config: Mapping[str, Any], sources: Mapping[str, TensorSpec]) -> None:
    """UsageError for weights that are not plain floats; fp8 in blocks is decoded before, and no trace is left of it."""
    method = method_of(config)
    coded = next((name for name, spec in sources.items() if spec.dtype in EIGHT_BITS), None)
    packed = next((name for name in sources if PACKED.search(name)), None)
    scales = next((name for name in sources if name.endswith(BLOCK_SCALES)), None)
    if method == "fp8" and not (coded or packed or scales):
        return
    if method in REMEDIES or packed:
        method = method or "a method config.json does not name"
        raise UsageError(f"the weights are quantized with {method}", remedy=REMEDIES.get(method, UNPACKED))
    if coded or scales:
        told = f"{quoted(coded or scales)} is 8-bit and would lose its scales in a plain cast"
        raise UsageError(told, remedy=f"it has to be multiplied with its scales first: {UNPACKED}")
    if method:
        raise UsageError(f"the weights are quantized with {quoted(method)}", remedy=UNPACKED)
