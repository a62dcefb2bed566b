"""What every value of the weights tells: what is not finite, what float16 loses, what is all the same."""

from __future__ import annotations

import struct
from math import prod
from typing import Any

from cases_pickles import PLAIN, bin_only
from cases_weights import FILE, entry, header, tensors
from rule_case import Case, info, passes, warning
from small_model import TENSORS, Edit, all_of, config, gone, put, same, stored, weights

LARGE = {"large": ("BF16", [1024, 1024])}
"""More bytes than are looked at unasked."""

MATRIX = "lm_head.weight"
NORM = "model.norm.weight"
NAN, ONE = b"\xc0\x7f", b"\x80\x3f"


def floats(*values: float) -> Edit:
    """The small model with a bias of these values in float32."""
    return stored({"x": ("F32", [len(values)])}, fill={"x": struct.pack(f"<{len(values)}f", *values)})


def filled(fill: dict[str, bytes] | None = None, **more: Any) -> Edit:
    """The small model with values as training leaves them, but for the bytes given."""
    usual = {name: (b"\x80\x3f\x00\xbf" * prod(shape))[: 2 * prod(shape)] for name, (_, shape) in TENSORS.items()}
    return stored(fill={**usual, **(fill or {})}, **more)


def zeros(name: str) -> dict[str, bytes]:
    return {name: bytes(2 * prod(TENSORS[name][1]))}


def shared(name: str, zero: int) -> dict[str, bytes]:
    """So many zeros of a hundred in a tensor."""
    size = prod(TENSORS[name][1])
    return {name: bytes(2 * (size * zero // 100)) + b"\x80\x3f\x00\x40" * size}


def cut(changes: dict[str, bytes]) -> dict[str, bytes]:
    return {name: raw[: 2 * prod(TENSORS[name][1])] for name, raw in changes.items()}


CASES: list[Case] = [
    warning("HB122", "a NaN at the end of much", stored(LARGE, fill={"large": bytes(2**21 - 2) + NAN}), values=True),
    passes("HB122", "a NaN where nobody looks", stored(LARGE, fill={"large": bytes(2**21 - 2) + NAN})),
    warning("HB122", "a NaN in eight bits", stored({"x": ("F8_E4M3", [1])}, fill={"x": b"\x7f"}), values=True),
    passes("HB122", "all finite", filled(), values=True),
    info("HB123", "seventy thousand", floats(7e4), values=True),
    warning("HB123", "for float16", floats(7e4), values=True, dtype="float16"),
    warning("HB123", "for half", floats(-7e4), values=True, dtype="half"),
    warning("HB123", "stated", all_of(floats(7e4), config(torch_dtype="float16")), values=True),
    warning("HB123", "stated and auto", all_of(floats(7e4), config(dtype="float16")), values=True, dtype="auto"),
    info("HB123", "stated, another asked", all_of(floats(7e4), config(dtype="float16")), values=True, dtype="bfloat16"),
    passes("HB123", "the largest", floats(65519.0, -65504.0), values=True, dtype="float16"),
    passes("HB123", "infinite already", floats(float("inf"), float("nan")), values=True, dtype="float16"),
    passes("HB123", "not asked for", floats(7e4), dtype="float16"),
    info("HB124", "all of them", floats(1e-9, 2e-9), values=True),
    warning("HB124", "for float16", floats(1e-9, 2e-9), values=True, dtype="float16"),
    warning("HB124", "one of a hundred", floats(1e-9, *[1.0] * 99), values=True, dtype="float16"),
    passes("HB124", "one of a hundred and one", floats(1e-9, *[1.0] * 100), values=True, dtype="float16"),
    passes("HB124", "the smallest", floats(6e-8, 0.0), values=True, dtype="float16"),
    passes("HB124", "not asked for", floats(1e-9), dtype="float16"),
    warning("HB125", "a head of zeros", filled(zeros(MATRIX)), values=True),
    warning("HB125", "a head of ones", filled({MATRIX: ONE * 128}), values=True),
    warning("HB125", "a norm of zeros", filled(zeros(NORM)), values=True),
    passes(
        "HB125", "a norm of zeros that adds one", all_of(filled(zeros(NORM)), config(model_type="gemma2")), values=True
    ),
    passes("HB125", "a norm nobody explains", all_of(filled(zeros(NORM)), gone("config.json")), values=True),
    passes("HB125", "a norm of ones", filled({NORM: ONE * 8}), values=True),
    passes("HB125", "a bias of zeros", filled(changes={"a.bias": ("F32", [8])}), values=True),
    passes("HB125", "half of an adapter", filled(changes={"a.lora_B.weight": ("F32", [8, 2])}), values=True),
    passes("HB125", "one column", filled(changes={"a.weight": ("F32", [8, 1])}), values=True),
    passes("HB125", "NaN alone", filled({MATRIX: NAN * 128}), values=True),
    passes("HB125", "not asked for", filled(zeros(MATRIX))),
    info("HB126", "four bits", header(tensors(a=entry("F4", [4], [0, 2])), 2), values=True),
    info("HB126", "a pickle", bin_only(PLAIN), values=True),
    passes("HB126", "all there", same, values=True),
    passes("HB126", "a pickle, not asked for", bin_only(PLAIN)),
    passes("HB126", "pickles beside", put("training_args.bin", PLAIN), values=True),
    passes("HB126", "an empty file", put(FILE, weights({})), values=True),
    info("HB127", "half of a head", filled(cut(shared(MATRIX, 50))), values=True),
    passes("HB127", "less than half", filled(cut(shared(MATRIX, 49))), values=True),
    passes("HB127", "all of it, which is told elsewhere", filled(zeros(MATRIX)), values=True),
    passes("HB127", "not asked for", filled(cut(shared(MATRIX, 50)))),
]
