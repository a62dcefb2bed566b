"""Tensors of an architecture by name and shape, before any file exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod


@dataclass(frozen=True, slots=True)
class Part:
    """Equal tensors. In `name`, `{}` stands for the layer number; `layers` are the numbers of those that hold it.

    `copies` counts tensors a layer (or altogether, without `layers`); a `buffer` is stored but not a parameter.
    """

    name: str
    shape: tuple[int, ...]
    layers: tuple[int, ...] | None = None
    copies: int = 1
    buffer: bool = False

    @property
    def tensors(self) -> int:
        """How many tensors these are."""
        return self.copies * (1 if self.layers is None else len(self.layers))

    @property
    def elements(self) -> int:
        """Elements of all of them."""
        return self.tensors * prod(self.shape)


Parts = Iterator[Part]


def linear(name: str, out: int, into: int, bias: bool = False) -> Parts:
    """A dense layer: a weight of (out, into) and perhaps a bias."""
    yield Part(f"{name}.weight", (out, into))
    if bias:
        yield Part(f"{name}.bias", (out,))


def norm(name: str, size: int, bias: bool = False) -> Parts:
    """A normalisation: RMS has a weight, LayerNorm a bias as well."""
    yield Part(f"{name}.weight", (size,))
    if bias:
        yield Part(f"{name}.bias", (size,))


def conv(name: str, *shape: int, bias: bool = False) -> Parts:
    """A convolution: (out channels, in channels a group, kernel sizes)."""
    yield Part(f"{name}.weight", shape)
    if bias:
        yield Part(f"{name}.bias", shape[:1])


def table(name: str, rows: int, width: int) -> Parts:
    """An embedding."""
    yield Part(f"{name}.weight", (rows, width))


def vector(name: str, *shape: int) -> Parts:
    """A bare parameter."""
    yield Part(name, shape)


def under(prefix: str, parts: Iterable[Part]) -> Parts:
    """The same parts inside a module."""
    return (replace(part, name=f"{prefix}.{part.name}") for part in parts)


def on_layers(prefix: str, layers: Sequence[int], parts: Iterable[Part]) -> Parts:
    """The same parts in each of these layers of the list `prefix`."""
    held = tuple(layers)
    return (replace(part, name=f"{prefix}.{{}}.{part.name}", layers=held) for part in parts if held)


def times(copies: int, parts: Iterable[Part]) -> Parts:
    """Several alike."""
    return (replace(part, copies=part.copies * copies) for part in parts if copies)
