"""The memory of a KV cache: where it lies, what it holds, and putting it back."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, MutableSequence
from dataclasses import dataclass
from typing import Any

DEEPEST = 6
"""Objects within objects that are looked into: an encoder-decoder cache holds caches that hold layers."""


@dataclass(frozen=True)
class Slot:
    """One tensor or counter of a cache, and where it hangs."""

    name: str
    holder: Any
    key: Any

    def get(self) -> Any:
        """What hangs there now."""
        return self.holder[self.key]

    def put(self, value: Any) -> None:
        """Hang something else there."""
        self.holder[self.key] = value


@dataclass(frozen=True)
class Layout:
    """Address and shape of every tensor of a cache at one moment, by name."""

    tensors: dict[str, tuple[int, tuple[int, ...]]]

    def appeared(self, before: Layout) -> str:
        """Tensors that were not there before, as a clause; empty when there are none."""
        new = [name for name in self.tensors if name not in before.tensors]
        return f"{len(new)} of {len(self.tensors)} tensors had no memory yet, {new[0]} first" if new else ""

    def moved(self, before: Layout) -> str:
        """The first tensor that has another shape or address than before, as a clause; empty when all kept theirs."""
        for name, (address, shape) in self.tensors.items():
            if name not in before.tensors:
                continue
            old_address, old_shape = before.tensors[name]
            if shape != old_shape:
                return f"{name} went from {list(old_shape)} to {list(shape)}"
            if address != old_address:
                return f"{name} moved from {old_address:#x} to {address:#x}"
        return ""


class Kept:
    """A copy of everything a cache holds, tensors and counters alike."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._values = [(slot, _copy(slot.get())) for slot in slots(cache)]

    def restore(self) -> None:
        """Put it back, in place wherever a tensor still has its shape; what came later stays."""
        for slot, kept in self._values:
            now = slot.get()
            if not _is_tensor(kept):
                slot.put(kept)
            elif _is_tensor(now) and now.shape == kept.shape and now.dtype == kept.dtype:
                now.copy_(kept)
            else:
                slot.put(kept.clone())

    def lengths(self) -> str:
        """The first counter that differs from what was kept, as a clause; empty when all are as they were."""
        for slot, kept in self._values:
            now = slot.get()
            if _is_tensor(kept) and kept.dim():
                continue
            if now != kept:
                return f"{slot.name} is {_shown(now)} and was {_shown(kept)} at the end of the prompt"
        return ""

    def finite(self) -> str:
        """The first tensor that held a NaN or an infinity, as a clause; empty when none did."""
        for slot, kept in self._values:
            if _is_tensor(kept) and kept.is_floating_point() and not bool(kept.isfinite().all()):
                return f"{slot.name} holds values that are not finite"
        return ""


def layout(cache: Any) -> Layout:
    """Where the tensors of a cache lie now."""
    held = {slot.name: slot.get() for slot in slots(cache)}
    return Layout({name: (each.data_ptr(), tuple(each.shape)) for name, each in held.items() if _is_tensor(each)})


def slots(cache: Any) -> Iterator[Slot]:
    """Every tensor and every counter of a cache, layer by layer."""
    yield from _within(cache, "", 0, {id(cache)})


def _within(held: Any, name: str, depth: int, seen: set[int]) -> Iterator[Slot]:
    if depth > DEEPEST:
        return
    holder: Any = held if isinstance(held, MutableMapping | MutableSequence) else getattr(held, "__dict__", None)
    if holder is None:
        return
    keys = range(len(holder)) if isinstance(holder, MutableSequence) else list(holder)
    for key in keys:
        value, path = holder[key], f"{name}.{key}".lstrip(".")
        if _is_tensor(value) or (isinstance(value, int) and depth):
            yield Slot(path, holder, key)
        elif id(value) not in seen and _worth_looking(value):
            seen.add(id(value))
            yield from _within(value, path, depth + 1, seen)


def _worth_looking(value: Any) -> bool:
    if isinstance(value, list | dict):
        return True
    module = type(value).__module__
    return not isinstance(value, type) and not module.startswith(("builtins", "torch"))


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _copy(value: Any) -> Any:
    return value.clone() if _is_tensor(value) else value


def _shown(value: Any) -> str:
    return str(value.item()) if _is_tensor(value) and value.numel() == 1 else str(value)
