"""Bytes that quantised weights take, told from the configuration alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod
from typing import Any

from hfbench.estimate.parts import Part
from hfbench.estimate.settings import NotKnown
from hfbench.models.problem import quoted

FLOAT32, FLOAT16 = 4, 2
EXCLUDING = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "llm_int8_skip_modules")
NEVER = re.compile(r"embed|wte|wpe|lm_head|output_layer|norm|router|\bgate\.weight|position|conv|_bias$")
"""Modules that methods leave alone unless they say otherwise."""

EXPRESSION = "re:"
MOST_REPEATS, LONGEST_EXPRESSION = 6, 500
"""Expressions come from the file that is looked at: one that could take for ever is left out."""

Bytes = Callable[[int, int], int]
"""Bytes of a weight of (out, in), scales included."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How the linear weights are stored, and which are left as they are."""

    method: str
    bytes_of: Bytes
    excluded: tuple[str, ...]
    experts_only: bool = False
    expert_bytes_of: Bytes | None = None
    """Of experts, where they are packed tighter than the rest."""

    def stored(self, part: Part) -> tuple[int, int]:
        """(bytes of the layers that are packed, elements that are left) of equal tensors."""
        if len(part.shape) < 2 or part.buffer or NEVER.search(part.name):
            return 0, part.elements
        if self.experts_only and ".experts." not in part.name:
            return 0, part.elements
        held = part.layers if part.layers is not None else (None,)
        packed = sum(not self.excludes(part.name, number) for number in held) if self.excluded else len(held)
        *stack, out, into = part.shape
        each = prod(stack) * part.copies
        bytes_of = self.expert_bytes_of if self.expert_bytes_of and ".experts." in part.name else self.bytes_of
        return packed * each * bytes_of(out, into), (len(held) - packed) * each * out * into

    def excludes(self, name: str, layer: int | None) -> bool:
        """True when the list of exceptions names this module or one around it."""
        module = (name if layer is None else name.replace("{}", str(layer))).removesuffix(".weight")
        exact, pattern = _matcher(self.excluded)
        spelled = {module, module.replace("language_model.", ""), module.removeprefix("model.")}
        return any(
            not exact.isdisjoint(_runs(each)) or (pattern is not None and pattern.fullmatch(each) is not None)
            for each in spelled
        )


def scheme_of(raw: Mapping[str, Any], side: Mapping[str, Any] | None = None) -> Scheme | None:
    """The scheme of a configuration, None when it is not quantised; NotKnown names a method not counted here.

    `side` is the object in hf_quant_config.json, which ModelOpt writes beside config.json.
    """
    told = _configured(raw) or (side or {}).get("quantization")
    if not isinstance(told, dict) or not told:
        return None
    method = str(told.get("quant_method") or told.get("quant_algo") or "").lower()
    algorithm = str(told.get("quant_algo") or "").lower()
    excluded = tuple(each for name in EXCLUDING for each in _listed(told.get(name)) if isinstance(each, str) and each)
    if "modelopt" in method or algorithm:
        return Scheme(algorithm or method, _modelopt(algorithm or method), excluded)
    maker = MAKERS.get(method.replace("_", "-"))
    if maker is None:
        raise NotKnown(f"the bytes of weights quantised by {quoted(method or 'an unnamed method')} are not known")
    experts = _mxfp4 if raw.get("expert_dtype") == "fp4" else None
    return Scheme(method, maker(told), excluded, experts_only=method == "mxfp4", expert_bytes_of=experts)


def _configured(raw: Mapping[str, Any]) -> Any:
    sections = [raw, *(value for value in raw.values() if isinstance(value, dict))]
    return next(
        (
            each[name]
            for each in sections
            for name in ("quantization_config", "compression_config")
            if isinstance(each.get(name), dict)
        ),
        None,
    )


def _fp8(told: Mapping[str, Any]) -> Bytes:
    """One byte, and a 32-bit scale a block, or one for all (DeepSeek-V3's weight_block_size)."""
    block = told.get("weight_block_size")
    if isinstance(block, list) and len(block) == 2 and all(type(each) is int and each > 0 for each in block):
        rows, columns = block
        return lambda out, into: out * into + FLOAT32 * ceil(out / rows) * ceil(into / columns)
    return lambda out, into: out * into + 2 * FLOAT32


def _grouped(bits: int, group: int, scale: float, zeros: bool, order: bool = False) -> Bytes:
    """Packed integers, a scale and perhaps a zero for each group of inputs, perhaps an order of inputs (GPTQ)."""

    def bytes_of(out: int, into: int) -> int:
        groups = ceil(into / group) if group > 0 else 1
        packed = out * into * bits / 8 + groups * out * (scale + (bits / 8 if zeros else 0))
        return ceil(packed + (4 * into if order else 0))

    return bytes_of


def _integers(told: Mapping[str, Any], *, order: bool) -> Bytes:
    bits, group = told.get("bits", told.get("w_bit", 4)), told.get("group_size", told.get("q_group_size", 128))
    if type(bits) is not int or type(group) is not int or not 0 < bits <= 8:
        raise NotKnown("quantization_config does not give bits and group_size")
    return _grouped(bits, group, FLOAT16, zeros=True, order=order)


def _bitsandbytes(told: Mapping[str, Any]) -> Bytes:
    """LLM.int8 has a scale a row; 4 bit a scale for 64 values, itself in 8 bit when quantised twice."""
    if told.get("load_in_8bit"):
        return lambda out, into: out * into + FLOAT32 * out
    scale = 1 + FLOAT32 / 256 if told.get("bnb_4bit_use_double_quant") else FLOAT32
    return lambda out, into: ceil(out * into * (0.5 + scale / 64))


def _compressed(told: Mapping[str, Any]) -> Bytes:
    """compressed-tensors: bits, group and strategy of the first group of weights."""
    groups = told.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    if not isinstance(weights, dict) or type(weights.get("num_bits")) is not int:
        raise NotKnown("quantization_config names no weights")
    bits, group = weights["num_bits"], weights.get("group_size")
    if weights.get("type") == "float" and bits == 4:
        return _nvfp4 if group == 16 else _mxfp4
    if bits == 8:
        return lambda out, into: out * into + FLOAT16 * out
    return _grouped(bits, group if type(group) is int else 0, FLOAT16, zeros=not weights.get("symmetric", True))


def _nvfp4(out: int, into: int) -> int:
    """Half a byte, an 8-bit scale for 16 values, two 32-bit scales a tensor."""
    return ceil(out * into / 2) + out * ceil(into / 16) + 2 * FLOAT32


def _mxfp4(out: int, into: int) -> int:
    """Half a byte and an 8-bit exponent for 32 values (OCP Microscaling v1.0)."""
    return ceil(out * into / 2) + out * ceil(into / 32)


def _modelopt(algorithm: str) -> Bytes:
    if "nvfp4" in algorithm and "mixed" not in algorithm:
        return _nvfp4
    if algorithm == "fp8":
        return _fp8({})
    if algorithm.startswith("w4a16_awq") or algorithm == "w4a8_awq":
        return _grouped(4, 128, FLOAT16, zeros=False)
    raise NotKnown(f"the bytes of weights quantised by {quoted(algorithm)} are not known")


MAKERS: dict[str, Callable[[Mapping[str, Any]], Bytes]] = {
    "fp8": _fp8,
    "fbgemm-fp8": lambda told: lambda out, into: out * into + FLOAT32 * out,
    "mxfp4": lambda told: _mxfp4,
    "awq": lambda told: _integers(told, order=False),
    "gptq": lambda told: _integers(told, order=True),
    "auto-round": lambda told: _integers(told, order=False),
    "intel/auto-round": lambda told: _integers(told, order=False),
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
}


def _listed(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _runs(module: str) -> Iterable[str]:
    """Every run of a module's dotted words: `a.b`, `a` and `b` of `a.b`."""
    words = module.split(".")
    return (".".join(words[start:end]) for start in range(len(words)) for end in range(start + 1, len(words) + 1))


@lru_cache(maxsize=8)
def _matcher(excluded: tuple[str, ...]) -> tuple[frozenset[str], re.Pattern[str] | None]:
    """The names to find, and one expression for all patterns."""
    exact = frozenset(each for each in excluded if "*" not in each and not each.startswith(EXPRESSION))
    globs = [each for each in excluded if "*" in each and not each.startswith(EXPRESSION)]
    wild = {_glob(each) for each in globs}
    wild |= {f"(?:{each[len(EXPRESSION) :]}).*" for each in excluded if each.startswith(EXPRESSION) and _tame(each)}
    return exact, re.compile("|".join(sorted(wild))) if wild else None


def _glob(pattern: str) -> str:
    """A star stands for anything; what lies inside a module that is named is named as well."""
    return ".*".join(map(re.escape, re.split(r"\*+", pattern))) + r"(?:\..*)?"


def _tame(expression: str) -> bool:
    """True for an expression that compiles and cannot take long: no repeated groups, few repetitions."""
    if re.search(r"\)[*+?{]|\\\d", expression) or len(re.findall(r"[*+{]", expression)) > MOST_REPEATS:
        return False
    try:
        re.compile(expression[len(EXPRESSION) :])
    except (re.error, RecursionError, OverflowError):
        return False
    return len(expression) <= LONGEST_EXPRESSION
