"""The builder `openvino`: the ONNX graph of a model in OpenVINO's own form."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hfbench.engines.builders.base import Asked, Built, Making
from hfbench.engines.builders.onnx import CODE_BYTES, GRAPH, opset, refuse_unless_cpu_fp32, write_graph
from hfbench.engines.programs import write_form
from hfbench.models.reference import Location

MODEL = "engine.xml"
"""Its weights lie in engine.bin."""


class OpenVino:
    """OpenVINO's model format, converted from ONNX; compiled for the processor when it is loaded."""

    name = "openvino"
    summary = "OpenVINO model made from the ONNX graph, for the CPU"
    needs = ("torch", "transformers", "safetensors", "onnx", "onnxscript", "openvino")
    runs_with = ("torch", "openvino")
    extra = "openvino"
    auto_dtype = "fp32"

    def refuse(self, asked: Asked, location: Location) -> None:
        """UsageError for a GPU and for another dtype than fp32."""
        refuse_unless_cpu_fp32(self.name, asked)

    def space(self, asked: Asked, weight_bytes: int) -> int:
        """The weights twice: the ONNX graph is there until the conversion is done."""
        return 2 * weight_bytes + CODE_BYTES

    def build(self, making: Making) -> Built:
        """Export to ONNX, convert, and leave nothing of the ONNX graph behind."""
        import openvino

        with tempfile.TemporaryDirectory(dir=making.folder, prefix=".onnx-") as between:
            form = write_graph(making, Path(between))
            options = {"from": f"ONNX, {opset(Path(between) / GRAPH)}"}
            making.log("converting to OpenVINO")
            with making.translated("OpenVINO cannot convert the graph"):
                model = openvino.convert_model(Path(between) / GRAPH)
                openvino.save_model(model, making.folder / MODEL, compress_to_fp16=False)
        write_form(making.folder, form)
        return Built(dtype=making.load().dtype, options=options)


BUILDER = OpenVino()
