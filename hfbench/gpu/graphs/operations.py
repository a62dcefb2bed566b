"""The operations a step asks torch for, so that two runs of the same Python can be compared."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves


class Operations(TorchDispatchMode):  # type: ignore[misc]  # torch is not read by the type checker
    """Notes each operation and its arguments that are not tensors, and runs it.

    A graph repeats both as they were at capture: a later run that asks for others would not be repeated by a replay.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[Any, ...]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:  # torch adds some of its own when modes are nested
            return func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs or {}))
        constants = [_plain(leaf) for leaf in leaves if not isinstance(leaf, torch.Tensor)]
        if func is torch.ops.aten.lift_fresh.default:  # torch.tensor(x): the value came from Python
            constants.append(_value(args[0]))
        self.seen.append((str(func), tuple(constants)))
        return func(*args, **(kwargs or {}))


def changed(captured: list[tuple[str, tuple[Any, ...]]], later: list[tuple[str, tuple[Any, ...]]]) -> str:
    """The first operation of `later` that `captured` does not have in that place, as a clause; empty when none."""
    for place, (before, now) in enumerate(zip(captured, later, strict=False), start=1):
        if before[0] != now[0]:
            return f"operation {place} was {before[0]} at capture and is {now[0]}"
        if before[1] != now[1]:
            pairs = zip_longest(before[1], now[1], fillvalue="nothing")
            was, became = next((one, other) for one, other in pairs if one != other)
            return f"operation {place}, {now[0]}, had {was} at capture and has {became}"
    if len(captured) != len(later):
        longer, place = (later, len(captured)) if len(later) > len(captured) else (captured, len(later))
        which = "only now" if longer is later else "only at capture"
        return f"operation {place + 1}, {longer[place][0]}, is there {which}"
    return ""


def _plain(value: Any) -> Any:
    """A constant that can be compared and shown."""
    return value if isinstance(value, int | float | bool | str | complex | None) else str(value)


def _value(tensor: torch.Tensor) -> Any:
    with _disable_current_modes():  # a tape below would take this for the step reading a value
        return tensor.item() if tensor.numel() == 1 else str(tensor)
