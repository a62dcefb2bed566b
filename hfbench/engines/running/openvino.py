"""Drives OpenVINO models on the CPU; caches stay where they are, shared with the requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hfbench.engines.builders.openvino import MODEL
from hfbench.engines.manifest import Manifest
from hfbench.engines.programs import read_form
from hfbench.engines.running.exchanging import ExchangingSteps


def open_steps(folder: Path, manifest: Manifest, device: Any, threads: int) -> ExchangingSteps:
    """Read the model and compile it for this processor, in full precision."""
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(str(folder / MODEL), "CPU", settings)
    steps = ExchangingSteps(read_form(folder), manifest.shapes.batch)
    steps.run = _Requests(compiled, steps)
    return steps


class _Requests:
    """A request for each direction in which the caches change places."""

    def __init__(self, compiled: Any, steps: ExchangingSteps) -> None:
        self._requests = [self._request(compiled, steps, turn) for turn in (0, 1)]

    def __call__(self, ids: Any, turn: int) -> None:
        request = self._requests[turn]
        request.set_tensor("ids", _shared(ids.contiguous()))
        request.infer()

    @staticmethod
    def _request(compiled: Any, steps: ExchangingSteps, turn: int) -> Any:
        request = compiled.create_infer_request()
        given = {**steps.sides[turn].named(), "position": steps.position}
        taken = {**steps.sides[1 - turn].named("new_"), "logits": steps.logits}
        for name, tensor in {**given, **taken}.items():
            request.set_tensor(name, _shared(tensor))
        return request


def _shared(tensor: Any) -> Any:
    """A tensor of OpenVINO over the memory of torch's."""
    import openvino

    return openvino.Tensor(tensor.numpy(), shared_memory=True)
