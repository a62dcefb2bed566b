"""Drives ONNX graphs with onnxruntime on the CPU; caches stay where they are, bound by address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hfbench.engines.builders.onnx import GRAPH
from hfbench.engines.manifest import Manifest
from hfbench.engines.programs import read_form
from hfbench.engines.running.exchanging import ExchangingSteps


def open_steps(folder: Path, manifest: Manifest, device: Any, threads: int) -> ExchangingSteps:
    """Load the graph into a session of onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / GRAPH), options, providers=["CPUExecutionProvider"])
    steps = ExchangingSteps(read_form(folder), manifest.shapes.batch)
    steps.run = _Bound(session, steps)
    return steps


class _Bound:
    """A session with a binding for each direction in which the caches change places."""

    def __init__(self, session: Any, steps: ExchangingSteps) -> None:
        self._session = session
        self._bindings = [self._binding(steps, turn) for turn in (0, 1)]

    def __call__(self, ids: Any, turn: int) -> None:
        binding, own = self._bindings[turn], ids.contiguous()
        self._bind(binding.bind_input, "ids", own)
        self._session.run_with_iobinding(binding)

    def _binding(self, steps: ExchangingSteps, turn: int) -> Any:
        binding = self._session.io_binding()
        for name, tensor in {**steps.sides[turn].named(), "position": steps.position}.items():
            self._bind(binding.bind_input, name, tensor)
        for name, tensor in {**steps.sides[1 - turn].named("new_"), "logits": steps.logits}.items():
            self._bind(binding.bind_output, name, tensor)
        return binding

    @staticmethod
    def _bind(bind: Any, name: str, tensor: Any) -> None:
        bind(name, "cpu", 0, tensor.numpy().dtype, tuple(tensor.shape), tensor.data_ptr())
