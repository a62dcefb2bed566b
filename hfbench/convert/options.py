"""What words of the command line mean for a conversion."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hfbench.errors import UsageError
from hfbench.models.problem import listed, quoted
from hfbench.units import convert, parse_quantity

CASTS = {"keep": None, "bf16": "BF16", "fp16": "F16", "fp32": "F32"}
"""What `--dtype` asks for, in the spelling of safetensors."""


def shard_bytes(text: str) -> int:
    """Bytes in `5GB`, `512 MiB` or a bare number; UsageError when it is no size or less than a byte."""
    value, unit = parse_quantity(text)
    size = convert(value, unit or "B", "B")
    if size < 1:
        remedy = "write for example 5GB"
        raise UsageError(f"{quoted(text)} is no size of a file", where="--max-shard-size", remedy=remedy)
    return int(size)


def allowed(kinds: Collection[str], known: Sequence[str]) -> tuple[str, ...]:
    """The kinds of findings to allow; UsageError for a word that is none."""
    if wrong := [kind for kind in kinds if kind not in known]:
        raise UsageError(f"{listed(wrong)} is nothing to allow", where="--allow", remedy=f"known: {', '.join(known)}")
    return tuple(dict.fromkeys(kinds))
