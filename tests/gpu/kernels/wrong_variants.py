"""Kernels of the library with one line spoiled, by kernel and fault: what `kernel check` must refuse."""

from __future__ import annotations

WRONG: dict[str, dict[str, tuple[str, str]]] = {
    "add_rmsnorm": {
        "eps is left out": ("/ columns + eps)", "/ columns + 0.0 * eps)"),
        "one column too many": ("inside = column < columns", "inside = column <= columns"),
        "the mean is of the block": ("axis=0) / columns", "axis=0) / BLOCK"),
        "the sum is not written": (
            "values.to(total.dtype.element_ty), mask=inside)",
            "values.to(total.dtype.element_ty), mask=inside & (column < 0))",
        ),
        "the residual is left out": ("    values += tl.load(residual", "    _ = tl.load(residual"),
    },
    "silu_mul": {
        "the halves are swapped": ("active = gate /", "gate, up = up, gate\n    active = gate /"),
        "the sign of the exponent": ("tl.exp(-gate)", "tl.exp(gate)"),
        "one column too many": ("inside = column < columns", "inside = column <= columns"),
        "gelu of old": ("tl.exp(-gate)", "tl.exp(-1.702 * gate)"),
    },
    "rope": {
        "turned to the other side": ("first * c - second * s)", "first * c + second * s)"),
        "turned to the other side, interleaved": ("odd * c + even * s", "odd * c - even * s"),
        "the wrong way to pair": ("if interleaved:", "if interleaved == 0:"),
        "positions are not looked at": ("position = tl.load(positions + token)", "position = token"),
        "the rest is not copied": ("range(rotated, head_size, HALF)", "range(head_size, head_size, HALF)"),
        "one element too many": ("(begin + turn < head_size)", "(begin + turn <= head_size)"),
        "one head too many": ("there = head < heads", "there = head <= heads"),
        "half of the angles": (
            "turn < half, other=0.0)[None, :]\n    s",
            "turn < half // 2, other=0.0)[None, :]\n    s",
        ),
    },
    "penalties": {
        "rewarded": ("tl.where(values > 0, values / strength, values * strength)", "values * strength"),
        "divided below zero too": ("tl.where(values > 0, values / strength, values * strength)", "values / strength"),
        "the prompt counts": ("* output.to(tl.float32)", "* (prompt + output).to(tl.float32)"),
        "presence by the number": ("(output > 0).to(tl.float32)", "output.to(tl.float32)"),
        "the prompt is forgotten": ("(prompt > 0) | (output > 0), repeated", "output > 0, repeated"),
        "one token too many": ("inside = token < vocabulary", "inside = token <= vocabulary"),
    },
    "top_k_top_p": {
        "one token too few": ("count.to(tl.float32)", "(count - 1).to(tl.float32)"),
        "p of what k left out": ("lowest, floor, largest, False", "lowest, lowest, largest, False"),
        "negative numbers the wrong way round": ("tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)", "bits"),
        "the last that fits is dropped": (">= threshold\n        outside", "> threshold\n        outside"),
        "nothing is left of p = 0": ("tl.minimum(threshold, ordered(largest))", "threshold"),
        "one token too many": (
            "outside), mask=token < vocabulary)",
            "outside), mask=token <= vocabulary)",
        ),
    },
    "dequant_int4": {
        "the offset of the zero": ("& 15) + zero_offset", "& 15) + 0 * zero_offset"),
        "the other end first": ("(packed >> (4 * nibble))", "(packed >> (28 - 4 * nibble))"),
        "the sign is kept": ("((packed >> (4 * nibble)) & 15)", "(packed >> (4 * nibble))"),
        "groups in rows, not words": ("word // words_of_group", "word // (8 * words_of_group)"),
        "the order of AWQ": ("column % 8 * 4", "(column % 8 // 2 + column % 2 * 4) * 4"),
        "one column too many": ("(column < columns)", "(column <= columns)"),
    },
    "dequant_fp8": {
        "a bias of 8": ("* 256.0", "* 128.0"),
        "NaN is 480": ('tl.where((bits & 0x7F) == 0x7F, float("nan"), half.to(tl.float32) * 256.0)', "half * 256.0"),
        "the sign is lost": ("((bits & 0x80) << 8) | ", ""),
        "divided by the scale": ("other=0)) * scale", "other=0)) / scale"),
        "the scale of the first block": ("+ begin // SIDE)", ")"),
        "one row too many": ("(row < rows)", "(row <= rows)"),
    },
}
