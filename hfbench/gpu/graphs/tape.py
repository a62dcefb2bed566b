"""A tape: on the CPU, capture and replay by the rules of CUDA graphs. It times nothing and was no graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hfbench.gpu.graphs.recording import SyncDuringCapture

READING = {
    "item": ".item(), int(), float() or bool() of a tensor",
    "_local_scalar_dense": ".item(), int(), float() or bool() of a tensor",
    "is_nonzero": "bool(tensor)",
    "equal": "torch.equal",
    "allclose": "torch.allclose",
    "nonzero": "nonzero, whose shape depends on the values",
    "nonzero_numpy": "nonzero, whose shape depends on the values",
    "argwhere": "argwhere, whose shape depends on the values",
    "masked_select": "masked_select, whose shape depends on the values",
    "_unique": "unique, whose shape depends on the values",
    "_unique2": "unique, whose shape depends on the values",
    "unique_dim": "unique, whose shape depends on the values",
    "unique_consecutive": "unique, whose shape depends on the values",
    "bincount": "bincount, whose shape depends on the values",
}
"""Operations for which the host waits for the device, which a capturing stream refuses."""
COPIED_TO_HOST = {
    torch.Tensor.tolist: ".tolist()",
    torch.Tensor.numpy: ".numpy()",
    torch.Tensor.__array__: ".numpy()",
    torch.Tensor.cpu: ".cpu()",
}
"""Methods that read memory past the dispatcher, or would copy from the device and wait."""


class Tape:
    """Operations on fixed addresses, run again in their order by `replay`; Python runs once, while recording.

    As with a graph, recording does not compute: memory that was there before keeps its contents, and what the
    operations made is unreadable (NaN) until the first replay. Copies from host memory, which CUDA refuses, are not
    told apart on the CPU, and there is neither a stream nor a pool.
    """

    def __init__(self) -> None:
        self.output: Any = None
        self._recorder = _Recorder()

    def record(self, run: Callable[[], Any]) -> None:
        """Record what `run` asks for; SyncDuringCapture when it reads a value."""
        with _NothingRead(), self._recorder:
            self.output = run()
        self._recorder.undo()

    @property
    def operations(self) -> int:
        """How many operations were recorded."""
        return len(self._recorder.entries)

    def replay(self) -> None:
        """Run the recorded operations again; results land where they lay when they were recorded."""
        for func, args, kwargs, out in self._recorder.entries:
            again = func(*args, **kwargs)
            for kept, new in zip(tree_leaves(out), tree_leaves(again), strict=True):
                if isinstance(kept, torch.Tensor) and kept is not new and kept.data_ptr() != new.data_ptr():
                    kept.copy_(new)


class _Recorder(TorchDispatchMode):  # type: ignore[misc]  # torch is not read by the type checker
    """Runs and keeps every operation, and remembers memory from outside before it is written."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[Any, Any, Any, Any]] = []
        self._outside: set[int] = set()
        self._made: dict[int, torch.Tensor] = {}
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if told := _reads(func, args, kwargs):
            raise SyncDuringCapture(f"the step uses {told}")
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        self._outside |= {_memory(each) for each in tensors} - self._made.keys()
        if func._schema.is_mutable:
            for each in tensors:
                self._remember(each)
        out = func(*args, **kwargs)
        for each in tree_leaves(out):
            if isinstance(each, torch.Tensor) and _memory(each) not in self._outside:
                self._made.setdefault(_memory(each), each)
        self.entries.append((func, args, kwargs, out))
        return out

    def undo(self) -> None:
        """Put memory from outside back, and make what was computed unreadable."""
        for memory, before in self._before.values():
            memory.copy_(before)
        for each in self._made.values():
            if each.is_floating_point() and each.numel():
                _whole(each).fill_(torch.nan)

    def _remember(self, tensor: torch.Tensor) -> None:
        memory = _memory(tensor)
        if memory in self._outside and memory not in self._before:
            whole = _whole(tensor)
            self._before[memory] = (whole, whole.clone())


class _NothingRead(TorchFunctionMode):  # type: ignore[misc]
    """Refuses the methods that read memory past the dispatcher."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in COPIED_TO_HOST:
            raise SyncDuringCapture(f"the step uses {COPIED_TO_HOST[func]}")
        return func(*args, **(kwargs or {}))


def _reads(func: Any, args: Any, kwargs: Any) -> str:
    """What of the operation makes the host wait; empty when nothing does."""
    name = func._schema.name.partition("::")[2]
    if name in READING:
        return READING[name]
    if name in ("index", "index_put", "index_put_") and any(
        isinstance(each, torch.Tensor) and each.dtype in (torch.bool, torch.uint8) for each in args[1]
    ):
        return "an index by a boolean mask, whose shape depends on the values"
    if name == "where" and func._overloadname == "default":
        return "where with a condition alone, whose shape depends on the values"
    if name == "repeat_interleave" and "Tensor" in func._overloadname and kwargs.get("output_size") is None:
        return "repeat_interleave without output_size, whose shape depends on the values"
    return ""


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """All of the tensor's memory as one row."""
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.as_strided((elements,), (1,), 0)
