"""What a pickle speaks of, as plain data: nothing of it is imported, called or built."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Global:
    """The name of something in a module: `torch.bfloat16`, `argparse.Namespace`. Never looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(slots=True, eq=False)
class StandIn:
    """An object of another class: what it would be made from, and nothing that could run."""

    of: Global
    args: tuple[object, ...] = ()
    state: object = None
    items: list[object] = field(default_factory=list)
    """What would be appended to it, or put into it as (key, value)."""

    def attributes(self) -> dict[str, object]:
        """Its attributes as the pickle gives them; empty where it gives none."""
        state = self.state
        if isinstance(state, tuple) and len(state) == 2:  # the dictionary, and slots
            state = {**_named(state[0]), **_named(state[1])}
        return _named(state)


@dataclass(frozen=True, slots=True, eq=False)
class StorageRef:
    """The bytes of one storage of a torch file, which lie in the entry `data/KEY`. `numel` counts elements of `dtype`,
    or bytes where that is empty."""

    key: str
    dtype: str
    numel: int


@dataclass(frozen=True, slots=True, eq=False)
class TensorRef:
    """A view of a storage: offset and strides count elements of `dtype`, which is safetensors' spelling."""

    storage: StorageRef
    dtype: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


TORCH_DTYPES: dict[str, str] = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
"""torch's name of each dtype; packed ones are not among them."""

STORAGES: dict[str, str] = {
    "F64": "DoubleStorage",
    "F32": "FloatStorage",
    "F16": "HalfStorage",
    "BF16": "BFloat16Storage",
    "I64": "LongStorage",
    "I32": "IntStorage",
    "I16": "ShortStorage",
    "I8": "CharStorage",
    "U8": "ByteStorage",
    "BOOL": "BoolStorage",
    "C64": "ComplexFloatStorage",
}
"""The class by which torch names a storage of these; of the others it names only bytes."""

UNTYPED = Global("torch.storage", "UntypedStorage")


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a row-major tensor: (3, 4) has (4, 1)."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def _named(state: object) -> dict[str, object]:
    return {key: value for key, value in state.items() if isinstance(key, str)} if isinstance(state, dict) else {}
