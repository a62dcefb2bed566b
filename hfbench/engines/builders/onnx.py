"""The builder `onnx`: one ONNX graph for prompts and steps, which takes the KV cache and returns the new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hfbench.engines.builders.aoti import export
from hfbench.engines.builders.base import Asked, Built, Making
from hfbench.engines.programs import CacheForm, cache_form, functional, write_form
from hfbench.errors import UsageError
from hfbench.models.reference import Location

GRAPH = "engine.onnx"
DATA = f"{GRAPH}.data"
CODE_BYTES = 64 << 20


class Onnx:
    """torch.onnx by way of torch.export; run by onnxruntime on the CPU."""

    name = "onnx"
    summary = "ONNX graph with its KV cache as inputs and outputs, for onnxruntime on the CPU"
    needs = ("torch", "transformers", "safetensors", "onnx", "onnxscript", "onnxruntime")
    runs_with = ("torch", "onnxruntime")
    extra = "onnx"
    auto_dtype = "fp32"

    def refuse(self, asked: Asked, location: Location) -> None:
        """UsageError for a GPU, and for a dtype that onnxruntime computes by casting back and forth."""
        refuse_unless_cpu_fp32(self.name, asked)

    def space(self, asked: Asked, weight_bytes: int) -> int:
        """The weights once."""
        return weight_bytes + CODE_BYTES

    def build(self, making: Making) -> Built:
        """Export the graph, its weights in a file beside it."""
        form = write_graph(making, making.folder)
        write_form(making.folder, form)
        return Built(dtype=making.load().dtype, options={"opset": opset(making.folder / GRAPH)})


def refuse_unless_cpu_fp32(name: str, asked: Asked) -> None:
    """UsageError for all that the builders of CPU runtimes do not make."""
    if asked.gpu is not None:
        raise UsageError(f"builder {name} is for the CPU", remedy="give --device cpu, or use builder aoti")
    if asked.dtype != "fp32":
        raise UsageError(
            f"builder {name} makes engines in fp32, {asked.dtype} was asked for", remedy="give --dtype fp32"
        )


def write_graph(making: Making, folder: Path) -> CacheForm:
    """Write the model as ONNX into a folder; the form of its cache."""
    import torch

    loaded, asked = making.load(), making.asked
    form = cache_form(loaded, asked)
    making.run.progress("compile", 0, 2)
    exported = export(functional(loaded, asked, form), making)
    making.run.progress("compile", 1, 2)
    making.log("writing the graph as ONNX")
    with making.translated("the graph cannot be written as ONNX"), torch.no_grad():
        program: Any = torch.onnx.export(
            exported,
            dynamo=True,
            input_names=["ids", "position", *cache_names("keys", form), *cache_names("values", form)],
            output_names=["logits", *cache_names("new_keys", form), *cache_names("new_values", form)],
            verbose=False,
        )
        program.save(str(folder / GRAPH), external_data=True)
    making.run.progress("compile", 2, 2)
    return form


def cache_names(kind: str, form: CacheForm) -> list[str]:
    """`keys.0`, `keys.1` and so on."""
    return [f"{kind}.{index}" for index in range(len(form.keys))]


def opset(graph: Path) -> str:
    """The operator set a graph is written in."""
    import onnx

    model = onnx.load(str(graph), load_external_data=False)
    return ", ".join(f"{each.domain or 'ai.onnx'} {each.version}" for each in model.opset_import)


BUILDER = Onnx()
