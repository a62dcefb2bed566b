"""A declared kernel as an operator of torch: Triton on a GPU, the reference on the CPU, shapes for fake tensors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import GenericAlias
from typing import Any

from hfbench.gpu.kernels.choosing import Chooser
from hfbench.gpu.kernels.declaration import Kernel

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")

ShapeOf = Callable[..., Mapping[str, int]]


def register(name: str, kernel: Kernel, chooser: Chooser, shape_of: ShapeOf | None) -> Any:
    """Make the operator `namespace::name` through `torch.library.triton_op`, with the parameters of the reference.

    Outputs that are inputs as well are changed in place and not returned; the others are returned, one tensor or a
    tuple in the order of `outputs`. ValueError for a name or a parameter that no operator can have.
    """
    import torch
    from torch.library import triton_op, wrap_triton

    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an operator; write for example mine::{kernel.name}")
    signature = _signature(kernel, torch)
    changed = [each for each in kernel.outputs if each in signature.parameters]
    fresh = [each for each in kernel.outputs if each not in changed]
    returned = [None, torch.Tensor, GenericAlias(tuple, (torch.Tensor,) * len(fresh))][min(len(fresh), 2)]
    fn = kernel.fn
    interpreted = _interpreted(fn)

    def run(*values: Any, **named: Any) -> Any:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        inputs = bound.arguments
        given = dict(kernel.arguments(**inputs))
        _look(kernel, inputs, given, fresh)
        device = given[kernel.outputs[0]].device
        if device.type == "cpu" and not interpreted:
            _by_reference(kernel, inputs, given)
        else:
            shape = shape_of(**inputs) if shape_of else None
            config = chooser.choose(given, shape, _capability(torch, device))
            meta = {"num_warps": config.num_warps, "num_stages": config.num_stages, **config.options}
            launched = fn if interpreted else wrap_triton(fn)
            with _on(torch, given[kernel.outputs[0]]):
                launched[kernel.grid(given, config.constants)](**given, **config.constants, **meta)
        outputs = tuple(given[each] for each in fresh)
        return outputs[0] if len(outputs) == 1 else outputs or None

    def shapes(*values: Any, **named: Any) -> Any:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        given = kernel.arguments(**bound.arguments)
        outputs = tuple(given[each] for each in fresh)
        return outputs[0] if len(outputs) == 1 else outputs or None

    run.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
    operator = triton_op(name, run, mutates_args=changed)
    operator.register_fake(shapes)
    return operator._opoverload


def _interpreted(fn: Any) -> bool:
    """Whether Triton runs the function in its interpreter, on tensors of the CPU, as TRITON_INTERPRET=1 asks."""
    from triton.runtime.interpreter import InterpretedFunction

    return isinstance(fn, InterpretedFunction)


def _signature(kernel: Kernel, torch: Any) -> inspect.Signature:
    """The parameters of the reference with types that torch knows; one without a type is a tensor."""
    types: dict[str, Any] = {
        "Tensor": torch.Tensor,
        "Tensor|None": torch.Tensor | None,
        "Optional[Tensor]": torch.Tensor | None,
        "int": int,
        "float": float,
        "bool": bool,
        "str": str,
        "dtype": torch.dtype,
    }
    parameters = []
    for name, each in inspect.signature(kernel.reference).parameters.items():
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise ValueError(f"reference: {name!r} is no parameter of its own; name each")
        spelled = each.annotation if isinstance(each.annotation, str) else inspect.formatannotation(each.annotation)
        word = spelled.replace(" ", "").replace("torch.", "").replace("typing.", "")
        if each.annotation is not each.empty and word not in types:
            raise ValueError(f"reference: {name!r} is a {spelled[:80]}; an operator takes {', '.join(types)}")
        kind = torch.Tensor if each.annotation is each.empty else types[word]
        parameters.append(each.replace(annotation=kind, kind=each.POSITIONAL_OR_KEYWORD))
    return inspect.Signature(parameters)


def _look(kernel: Kernel, inputs: Mapping[str, Any], given: Mapping[str, Any], fresh: list[str]) -> None:
    """ValueError where `arguments` does not give the outputs as `outputs` says."""
    for name in kernel.outputs:
        if name not in given:
            raise ValueError(f"{kernel.name}: arguments gives no {name!r}, which is an output")
    for name in fresh:
        same = next((each for each, value in inputs.items() if value is given[name]), "")
        if same:
            raise ValueError(f"{kernel.name}: the output {name!r} is the input {same!r}; let both have one name")


def _by_reference(kernel: Kernel, inputs: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Fill the outputs from the reference, each at its own element type and strides."""
    results = kernel.reference(**inputs)
    results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    for name, result in zip(kernel.outputs, results, strict=True):
        if result.shape != given[name].shape:
            raise ValueError(
                f"{kernel.name}: {name} has the shape {tuple(given[name].shape)}, the reference {tuple(result.shape)}"
            )
        given[name].copy_(result)


def _capability(torch: Any, device: Any) -> str:
    """`9.0`; empty where it cannot be asked, as when a graph is traced on a machine without the GPU."""
    try:
        return ".".join(map(str, torch.cuda.get_device_capability(device))) if device.type == "cuda" else ""
    except (RuntimeError, AssertionError):
        return ""


def _on(torch: Any, tensor: Any) -> AbstractContextManager[Any]:
    """Triton launches on the current device, which need not be the tensor's; tensors that are traced have none."""
    real = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cuda"
    return torch.cuda.device(tensor.device) if real else nullcontext()
