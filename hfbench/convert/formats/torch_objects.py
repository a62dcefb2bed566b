"""The few constructors that pickles of torch call, answered with plain data; all others become stand-ins."""

from __future__ import annotations

from collections.abc import Callable

from hfbench.convert.formats.inert import STORAGES, TORCH_DTYPES, Global, StandIn, StorageRef, TensorRef

DTYPE_OF_STORAGE = {storage: dtype for dtype, storage in STORAGES.items()}
DTYPE_OF_NAME = {name: dtype for dtype, name in TORCH_DTYPES.items()}
UNTYPED_NAMES = frozenset({"torch.storage.UntypedStorage", "torch.UntypedStorage"})


def made(called: Global, args: tuple[object, ...]) -> object:
    """What a call would make, as plain data. ValueError when its arguments are not those of a torch file."""
    maker = MAKERS.get(str(called))
    return maker(args) if maker else StandIn(called, args)


def storage_of(persistent_id: object) -> StorageRef:
    """The storage behind a persistent id: ('storage', torch.BFloat16Storage, '0', 'cpu', 12)."""
    match persistent_id:
        case ("storage", Global() as kind, str(key), str(), int(numel), *_) if numel >= 0:
            if str(kind) in UNTYPED_NAMES:
                return StorageRef(key, "", numel)
            if kind.name in DTYPE_OF_STORAGE and kind.module in ("torch", "torch.cuda"):
                return StorageRef(key, DTYPE_OF_STORAGE[kind.name], numel)
            raise ValueError(f"a storage of the class {kind}")
    raise ValueError("a storage that is none of torch")


def dtype_named(found: object) -> str:
    """safetensors' spelling of torch.bfloat16; ValueError for dtypes it has none for."""
    if isinstance(found, Global) and found.module == "torch" and found.name in DTYPE_OF_NAME:
        return DTYPE_OF_NAME[found.name]
    raise ValueError(f"a dtype that safetensors has no name for: {found}")


def _tensor(args: tuple[object, ...]) -> TensorRef:
    match args:
        case (StorageRef() as storage, int(offset), tuple(shape), tuple(stride), *_) if storage.dtype:
            return _view(storage, storage.dtype, offset, shape, stride)
    raise ValueError("a tensor whose parts are not those of torch")


def _untyped_tensor(args: tuple[object, ...]) -> TensorRef:
    match args:
        case (StorageRef() as storage, int(offset), tuple(shape), tuple(stride), _, _, Global() as dtype, *_):
            return _view(storage, dtype_named(dtype), offset, shape, stride)
    raise ValueError("a tensor whose parts are not those of torch")


def _view(
    storage: StorageRef, dtype: str, offset: int, shape: tuple[object, ...], stride: tuple[object, ...]
) -> TensorRef:
    sizes = tuple(each for each in shape if type(each) is int and 0 <= each < 2**48)
    steps = tuple(each for each in stride if type(each) is int and 0 <= each < 2**48)
    if len(sizes) != len(shape) or len(steps) != len(stride) or len(sizes) != len(steps) or offset < 0:
        raise ValueError("a tensor of an impossible shape")
    return TensorRef(storage, dtype, offset, sizes, steps)


def _parameter(args: tuple[object, ...]) -> object:
    if args and isinstance(args[0], TensorRef):
        return args[0]
    raise ValueError("a parameter without a tensor")


def _ordered(args: tuple[object, ...]) -> object:
    """An OrderedDict, empty or from pairs."""
    if not args:
        return {}
    pairs = args[0]
    if isinstance(pairs, list) and all(
        isinstance(each, (list, tuple)) and len(each) == 2 and isinstance(each[0], (str, int)) for each in pairs
    ):
        return dict(pairs)
    raise ValueError("an OrderedDict of other things than pairs")


def _numbers(args: tuple[object, ...]) -> object:
    """torch.Size: a tuple."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)) and all(type(each) is int for each in args[0]):
        return tuple(args[0])
    raise ValueError("a torch.Size of other things than numbers")


def _encoded(args: tuple[object, ...]) -> object:
    """`_codecs.encode`: how protocol 2 spells bytes."""
    match args:
        case (str(text), "latin1"):
            return text.encode("latin1")
        case (str(text), "utf-8" | "utf8"):
            return text.encode()
    raise ValueError("bytes in an encoding other than latin1")


def _set(args: tuple[object, ...]) -> object:
    if not args:
        return set()
    if isinstance(args[0], (list, tuple)) and all(isinstance(each, (str, int, float)) for each in args[0]):
        return set(args[0])
    raise ValueError("a set of other things than texts and numbers")


MAKERS: dict[str, Callable[[tuple[object, ...]], object]] = {
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v3": _untyped_tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "collections.OrderedDict": _ordered,
    "torch.Size": _numbers,
    "_codecs.encode": _encoded,
    "builtins.set": _set,
    "builtins.frozenset": _set,
    "__builtin__.set": _set,  # what protocol 2 calls it
    "__builtin__.frozenset": _set,
}
