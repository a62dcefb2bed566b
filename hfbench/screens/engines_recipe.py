"""The forms that a manifest fills in: the same build again, a benchmark with the engine; and a model's first build."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hfbench.engines.fitting import fitting
from hfbench.engines.manifest import BY_REQUEST

if TYPE_CHECKING:
    from hfbench.engines.manifest import Manifest

DTYPES = ("bf16", "fp16", "fp32")


def rebuild_values(manifest: Manifest, path: str) -> dict[str, object]:
    """The fields of `engine.build` that make the same engine in the same place."""
    shapes, layout = manifest.shapes, manifest.layout
    values: dict[str, object] = {
        "model": model_of(manifest),
        "out": path,
        "builder": manifest.builder,
        "device": device_of(manifest),
        "dtype": manifest.dtype if manifest.dtype in DTYPES else "auto",
        "batch": shapes.batch,
        "min_prompt": shapes.min_prompt,
        "max_prompt": shapes.max_prompt,
        "context": shapes.context,
        "replace": True,
    }
    if attention := manifest.options.get("attention"):
        values["attention"] = attention
    if manifest.builder == "trtllm":
        values |= {"template": manifest.options.get("template", "").partition(", named by ")[0]}
        values |= {"set": _given(manifest.options), "tp": layout.tp, "pp": layout.pp}
    return values


def bench_values(manifest: Manifest, path: str) -> dict[str, object]:
    """The fields of `bench.generate` that measure this engine, at the longest prompt its shapes allow."""
    return {
        "model": model_of(manifest),
        "device": device_of(manifest),
        "mode": f"engine:{path}",
        **fitting(manifest.shapes),
    }


def first_values(model: str, roots: Sequence[str], builder: str = "aoti") -> dict[str, object]:
    """The fields of `engine.build` for a model without an engine: where it would go, unless that is changed."""
    name = model.rstrip("/").rpartition("/")[2]
    folder = roots[0] if roots else "engines"
    return {"model": model, "out": os.path.join(folder, f"{name}-{builder}")} if name else {}


def model_of(manifest: Manifest) -> str:
    """The checkpoint an engine was built from: its folder, wherever one stands now, or what was asked for."""
    return manifest.source.folder or manifest.source.given


def device_of(manifest: Manifest) -> str:
    """Where it runs."""
    return "auto" if manifest.built_on.gpu else "cpu"


def _given(options: Mapping[str, str]) -> tuple[str, ...]:
    """Options that the request gave, as `flag=value`."""
    found = ((name, BY_REQUEST.fullmatch(value)) for name, value in options.items())
    return tuple(f"{name}={match[1]}" for name, match in found if match)
