"""What the Fit tab asks for, as a value: keys turn it into the next one, and the action gets it as its fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hfbench.estimate.axes import BATCH_STEP, LEAST_CONTEXT, MOST_BATCH, MOST_CONTEXT
from hfbench.estimate.facts import FitReport

DTYPES = (None, "bfloat16", "float16", "float32", "fp8", "int8", "fp4")
KV_DTYPES = (None, "fp8", "bfloat16", "float16", "float32")
RUNTIMES = ("vllm", "transformers", "transformers-5.14")
RANKS = ("tp", "pp", "ep")
DEFAULT_GPU = "H100 SXM 80GB"
"""What is fitted to where this machine has no GPU."""

FIELDS = ("dtype", "kv_dtype", "tp", "pp", "ep", "gpu", "runtime", "context", "batch")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Fields of the action `fit`; None is the default of the model, and for `gpu` the GPUs of this machine."""

    dtype: str | None = None
    kv_dtype: str | None = None
    tp: int = 1
    pp: int = 1
    ep: int = 1
    gpu: str | None = None
    runtime: str = RUNTIMES[0]
    context: int | None = None
    batch: int = 1

    def values(self, model: str, cache_dir: str) -> dict[str, object]:
        """The fields of the action that differ from its defaults."""
        plain = Asked()
        given = {name: getattr(self, name) for name in FIELDS}
        told = {name: value for name, value in given.items() if value != getattr(plain, name)}
        return {"model": model, **told, "grid": True, **({"cache_dir": cache_dir} if cache_dir else {})}

    def turned(self, name: str, steps: int, result: FitReport | None, gpus: Sequence[str | None]) -> Asked:
        """The next choice of a field, round and round; expert ranks that the others do not allow go back to one."""
        choices = _choices(name, result, gpus)
        value = getattr(self, name)
        place = choices.index(value) if value in choices else -1
        turned = replace(self, **{name: choices[(place + steps) % len(choices)]})
        return replace(turned, ep=1) if name == "tp" and turned.ep % turned.tp else turned

    def moved(self, rows: int, columns: int, result: FitReport) -> Asked:
        """The cell beside the one asked for; past the edge of the grid contexts double and batches grow as well."""
        contexts = [row[0].context for row in result.grid]
        batches = [cell.batch for cell in result.grid[0]] if result.grid else []
        context = _beside(contexts, self.context or result.context, rows, 2, LEAST_CONTEXT, MOST_CONTEXT)
        batch = _beside(batches, self.batch, columns, BATCH_STEP, 1, MOST_BATCH)
        return replace(self, context=context, batch=batch)


def _choices(name: str, result: FitReport | None, gpus: Sequence[str | None]) -> Sequence[Any]:
    if name in RANKS:
        return (result.allowed[name] if result else ()) or (1,)
    return {"dtype": DTYPES, "kv_dtype": KV_DTYPES, "runtime": RUNTIMES, "gpu": gpus or (None,)}[name]


def _beside(axis: Sequence[int], value: int, steps: int, factor: int, least: int, most: int) -> int:
    if not steps:
        return value
    place = axis.index(value) + steps if value in axis else -1
    if 0 <= place < len(axis):
        return axis[place]
    further = value * factor if steps > 0 else value // factor
    return min(max(further, least), most)
