"""Tensors between bands of bytes that nobody may write: the interpreter checks no address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from hfbench.gpu.kernels.access import Region

BAND = 2**20
"""Bytes before and behind each storage: a tile of 256 x 256 fp32 elements beyond the edge still falls inside."""
POISON, WRITTEN = 0x7FC0, 0x3CC0
"""What bands are filled with: around inputs a NaN in fp16, bf16 and fp32, so that reading it spoils a result; around
outputs a small number, which an atomic update changes as it would not change a NaN. Each storage has low bits of its
own: what a kernel copies from one band into another is seen."""

Side = Literal["before", "after", "between rows", "input"]


@dataclass(frozen=True, kw_only=True)
class Trespass:
    """Elements that were written and must not be: beside an argument, or of one that is no output."""

    argument: str
    side: Side
    count: int
    farthest: int
    """Elements from the edge to the farthest of them; 0 where there is no edge."""

    def __str__(self) -> str:
        stores = f"{self.count:,} element{'s' if self.count > 1 else ''}"
        if self.side == "input":
            return f"stores into {self.argument}, which is no output: {stores}"
        if self.side == "between rows":
            return f"stores between the rows of {self.argument}: {stores}"
        edge = "past the end" if self.side == "after" else "before the start"
        return f"stores {edge} of {self.argument}: {stores}, the farthest {self.farthest:,} beyond"


class Guarded:
    """Copies of tensors between bands. Tensors that share a storage share one here."""

    def __init__(self, tensors: Mapping[str, Any], outputs: tuple[str, ...]) -> None:
        self.tensors: dict[str, Any] = {}
        self._outputs = outputs
        self._fenced: list[_Fenced] = []
        by_storage: dict[int, list[str]] = {}
        for name, tensor in tensors.items():
            by_storage.setdefault(tensor.untyped_storage()._cdata, []).append(name)
        for place, names in enumerate(by_storage.values()):
            filling = WRITTEN if set(names) & set(outputs) else POISON
            fenced = _Fenced({name: tensors[name] for name in names}, filling | (place % 0x3F + 1))
            self._fenced.append(fenced)
            self.tensors |= fenced.views

    def regions(self) -> list[Region]:
        """Where the storages lie, in the order of the arguments."""
        return [fenced.region() for fenced in self._fenced]

    def trespasses(self) -> list[Trespass]:
        """What was written since, outside the tensors or in one that is no output."""
        return [each for fenced in self._fenced for each in fenced.trespasses(self._outputs)]


class _Fenced:
    """One storage and its tensors."""

    def __init__(self, tensors: Mapping[str, Any], poison: int) -> None:
        storage = next(iter(tensors.values())).untyped_storage()
        self._size = size = storage.nbytes()
        words = (2 * BAND + size + 1) // 2
        self._bytes = torch.full((words,), poison, dtype=torch.int16).view(torch.uint8)
        poisoned = self._bytes.clone()
        self._bytes[BAND : BAND + size] = torch.empty(0, dtype=torch.uint8).set_(storage)
        self._inside = {name: self._mask(tensor) for name, tensor in tensors.items()}
        everything = torch.stack(list(self._inside.values())).any(dim=0)
        self._bytes = torch.where(everything, self._bytes, poisoned)
        self.views = {name: self._view(tensor) for name, tensor in tensors.items()}
        self._before = self._bytes.clone()

    def region(self) -> Region:
        begin = self._bytes.data_ptr() + BAND
        return Region(names=tuple(self.views), begin=begin, end=begin + self._size, band=BAND)

    def trespasses(self, outputs: tuple[str, ...]) -> Iterator[Trespass]:
        written = [name for name in self.views if name in outputs]
        wrong = self._bytes != self._before
        for name in written:
            wrong &= ~self._inside[name]
        if not wrong.any():
            return
        for name, inside in self._inside.items():
            if name not in written and (here := wrong & inside).any():
                yield self._trespass(name, "input", here)
                wrong &= ~here
        name = (written or list(self.views))[0]
        own = torch.stack([self._inside[each] for each in written or self.views]).any(dim=0).nonzero()
        begin, end = (int(own[0]), int(own[-1]) + 1) if len(own) else (BAND, BAND)
        parts: tuple[tuple[Side, int, int], ...] = (
            ("before", 0, begin),
            ("between rows", begin, end),
            ("after", end, len(wrong)),
        )
        for side, low, high in parts:
            if (here := wrong[low:high]).any():
                yield self._trespass(name, side, here, begin - low, end - low)

    def _trespass(self, name: str, side: Side, wrong: Any, begin: int = 0, end: int = 0) -> Trespass:
        item = self.views[name].element_size()
        places = wrong.nonzero().flatten()
        elements = len(((places - begin) // item).unique())
        farthest = {"before": begin - int(places[0]), "after": int(places[-1]) + 1 - end}.get(side, 0)
        return Trespass(argument=name, side=side, count=elements, farthest=-(-farthest // item))

    def _view(self, tensor: Any) -> Any:
        begin = BAND // tensor.element_size() + tensor.storage_offset()
        view = torch.empty(0, dtype=tensor.dtype)
        return view.set_(self._bytes.untyped_storage(), begin, tensor.size(), tensor.stride())

    def _mask(self, tensor: Any) -> Any:
        """Which bytes belong to the tensor."""
        item = tensor.element_size()
        mask = torch.zeros(len(self._bytes), dtype=torch.bool)
        sizes, strides = (*tensor.size(), item), (*(stride * item for stride in tensor.stride()), 1)
        mask.as_strided(sizes, strides, BAND + tensor.storage_offset() * item).fill_(True)
        return mask
