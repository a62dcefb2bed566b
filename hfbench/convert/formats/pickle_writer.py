"""Writes pickles of plain data, tensors and named classes, as torch.save would; nothing of torch is imported."""

from __future__ import annotations

import struct
from argparse import Namespace
from collections.abc import Callable, Iterable

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.inert import STORAGES, TORCH_DTYPES, UNTYPED, Global, StandIn, contiguous
from hfbench.models.dtypes import BITS

NEW, NAMESPACE = b"\x81", Global("argparse", "Namespace")
REBUILD, REBUILD_UNTYPED = Global("torch._utils", "_rebuild_tensor_v2"), Global("torch._utils", "_rebuild_tensor_v3")


class Reduced(StandIn):
    """A stand-in that is called to be made, not `__new__`: functions, and classes with a constructor."""


def pickled(value: object, tensors: Callable[[TensorSpec], str] | None = None) -> bytes:
    """A pickle of protocol 2, which torch's own safe reader knows in full.

    Tensors are `TensorSpec`s; `tensors` tells the key of the storage each gets. ValueError for other kinds of objects.
    """
    return _Writer(tensors).written(value)


class _Writer:
    def __init__(self, tensors: Callable[[TensorSpec], str] | None) -> None:
        self.tensors = tensors
        self.out = bytearray()
        self.memo: dict[object, int] = {}

    def written(self, value: object) -> bytes:
        self.out += b"\x80\x02"
        self.put(value)
        self.out += b"."
        return bytes(self.out)

    def put(self, value: object) -> None:
        match value:
            case None | True | False:
                self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
            case int():
                self.out += _integer(value)
            case float():
                self.out += b"G" + struct.pack(">d", value)
            case str():
                self.once(value, _text(value))
            case bytes():
                self.call(Global("_codecs", "encode"), (value.decode("latin1"), "latin1"))
            case Global():
                self.once(value, f"c{value.module}\n{value.name}\n".encode())
            case tuple():
                self.pack(value)
            case list():
                self.out += b"]"
                self.appended(value)
            case set() | frozenset():
                self.call(Global("builtins", type(value).__name__), (sorted(value, key=repr),))
            case dict():
                self.out += b"}"
                self.set_items(value.items())
            case TensorSpec():
                self.tensor(value)
            case Namespace():
                self.made(NAMESPACE, (), NEW)
                self.build(vars(value))
            case StandIn():
                self.stand_in(value)
            case _:
                raise ValueError(f"{type(value).__module__}.{type(value).__qualname__} is no plain data")

    def once(self, value: object, spelled: bytes) -> None:
        """Spell a text or a name the first time, and refer to it later."""
        number = self.memo.get(value)
        if number is None:
            self.memo[value] = number = len(self.memo)
            self.out += spelled + _index(b"q", b"r", number)
        else:
            self.out += _index(b"h", b"j", number)

    def pack(self, values: tuple[object, ...]) -> None:
        marked = len(values) > 3
        if marked:
            self.out += b"("
        for value in values:
            self.put(value)
        self.out += b"t" if marked else (b")", b"\x85", b"\x86", b"\x87")[len(values)]

    def appended(self, values: Iterable[object]) -> None:
        self.out += b"("
        for value in values:
            self.put(value)
        self.out += b"e"

    def set_items(self, items: Iterable[tuple[object, object]]) -> None:
        self.out += b"("
        for key, value in items:
            self.put(key)
            self.put(value)
        self.out += b"u"

    def made(self, of: Global, args: tuple[object, ...], how: bytes) -> None:
        self.put(of)
        self.pack(args)
        self.out += how

    def call(self, of: Global, args: tuple[object, ...]) -> None:
        self.made(of, args, b"R")

    def build(self, state: object) -> None:
        self.put(state)
        self.out += b"b"

    def stand_in(self, value: StandIn) -> None:
        self.made(value.of, value.args, b"R" if isinstance(value, Reduced) else NEW)
        if value.items:
            raise ValueError(f"{value.of}: contents of foreign classes are not written")
        if value.state is not None:
            self.build(value.state)

    def tensor(self, spec: TensorSpec) -> None:
        if self.tensors is None or spec.dtype not in TORCH_DTYPES:
            raise ValueError(f"{spec.name}: torch has no dtype for {spec.dtype}")
        count = spec.rows * spec.columns
        untyped = spec.dtype not in STORAGES
        kind = UNTYPED if untyped else Global("torch", STORAGES[spec.dtype])
        self.put(REBUILD_UNTYPED if untyped else REBUILD)
        self.out += b"("
        stored = count * BITS[spec.dtype] // 8 if untyped else count
        self.pack(("storage", kind, self.tensors(spec), "cpu", stored))
        self.out += b"Q"
        for value in (0, spec.shape, contiguous(spec.shape), False):
            self.put(value)
        self.call(Global("collections", "OrderedDict"), ())
        if untyped:
            self.put(Global("torch", TORCH_DTYPES[spec.dtype]))
        self.out += b"tR"


def _text(value: str) -> bytes:
    raw = value.encode("utf-8", "surrogatepass")
    return b"X" + len(raw).to_bytes(4, "little") + raw


def _index(short: bytes, long: bytes, number: int) -> bytes:
    return short + bytes([number]) if number < 256 else long + number.to_bytes(4, "little")


def _integer(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -(2**31) <= value < 2**31:
        return b"J" + value.to_bytes(4, "little", signed=True)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if len(raw) > 255:
        raise ValueError("a whole number of more than 255 bytes")
    return b"\x8a" + bytes([len(raw)]) + raw
