"""What a kernel file declares: one `KERNEL = Kernel(...)`, read by check, static, time and tune."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TORCH_DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "i1": "bool",
}
"""Names of element types as Triton's signatures spell them, and as torch does."""

_ARGUMENT = re.compile(r"(?P<pointer>\*?)(?P<type>[A-Za-z]\w*)(?::(?P<divisor>\d+))?|(?P<constant>-?\d+)")
_PLACEHOLDER = "T"
_FUNCTIONS = ("inputs", "arguments", "reference", "grid", "bytes_moved", "flops", "applies")
DIVISORS = (None, "16")
"""What Triton specialises on: nothing, or divisibility by 16."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """One way to compile a kernel: its constexpr parameters by name, and the options of the compiler."""

    constants: Mapping[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the compiler, such as `maxnreg`."""
    name: str = ""
    """What people call the tile, such as `128x256x64`; the constants themselves when empty."""

    @property
    def label(self) -> str:
        """`128x256x64 w8 s4`: the name within its kernel, unique there."""
        name = self.name or ",".join(f"{key}={value}" for key, value in self.constants.items()) or "default"
        more = "".join(f" {key}={value}" for key, value in self.options.items())
        return f"{name} w{self.num_warps} s{self.num_stages}{more}"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One problem to solve: sizes by the letter of their axis (`case["R"]`), an element type and a device."""

    shape: Mapping[str, int]
    dtype: str
    device: str = "cpu"

    def __getitem__(self, axis: str) -> int:
        return self.shape[axis]

    @property
    def torch_dtype(self) -> Any:
        """The element type as torch knows it."""
        import torch

        return getattr(torch, TORCH_DTYPES[self.dtype])

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.torch_dtype.itemsize)

    def normal(self, *sizes: int, dtype: str | None = None) -> Any:
        """A tensor of standard normal values; whoever asks for inputs sets the seed."""
        import torch

        kind = getattr(torch, TORCH_DTYPES[dtype or self.dtype])
        return torch.randn(*sizes, device=self.device).to(kind)

    def integers(self, low: int, high: int, *sizes: int, dtype: str = "i32") -> Any:
        """A tensor of whole numbers from low to high - 1."""
        import torch

        return torch.randint(low, high, sizes, device=self.device).to(getattr(torch, TORCH_DTYPES[dtype]))


@dataclass(frozen=True)
class Tolerance:
    """An output passes where |out - reference| <= absolute + relative * |reference|.

    ValueError for what is no number, negative or not finite: nothing could be compared with it.
    """

    relative: float
    absolute: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                raise ValueError(f"the {name} tolerance is {value!r:.40}; give a number from 0 on")


def _always(arguments: Mapping[str, Any], constants: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Everything hfbench needs to know of a kernel; docs/kernels.md shows a whole file.

    A caller has `inputs`; `arguments` turns them into what the Triton function is launched with, outputs allocated;
    `reference` says from the same inputs what must come out. ValueError names what does not fit together.
    """

    name: str
    fn: Any
    """The function under `@triton.jit`."""
    inputs: Callable[[Case], Mapping[str, Any]]
    """What a caller has, by name: tensors on `case.device` and plain numbers."""
    arguments: Callable[..., Mapping[str, Any]]
    """`arguments(**inputs)`: the parameters of `fn` but for the constants, outputs allocated with `torch.empty`."""
    outputs: tuple[str, ...]
    """Parameters that are written; one that is an input as well is changed in place."""
    reference: Callable[..., Any]
    """`reference(**inputs)`: the outputs in plain torch, one tensor or a tuple, computed in fp32 or better."""
    grid: Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[int, ...]]
    """`grid(arguments, constants)`: how many programs are launched along each axis."""
    signature: Mapping[str, str]
    """Types of the parameters without the constants, as Triton's ahead-of-time compiler writes them: `*T:16` points to
    elements of the case's type at an address that 16 divides, `i32` is any number, `1` is always one."""
    configs: tuple[Config, ...]
    shapes: tuple[Mapping[str, int], ...]
    """Small problems to check, with odd sizes, tails and a single row among them."""
    sizes: tuple[Mapping[str, int], ...] = ()
    """Problems worth timing; the shapes when empty."""
    dtypes: tuple[str, ...] = ("fp16", "bf16", "fp32")
    """Element types it takes, the usual one first."""
    tolerance: Mapping[str, Tolerance]
    """By element type, with the reason as a comment beside it."""
    bytes_moved: Callable[[Case], int]
    """Bytes that must be read and written at least once."""
    flops: Callable[[Case], int]
    """Floating point operations, a multiply and an add being two."""
    applies: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = _always
    """`applies(arguments, constants)`: whether a configuration can serve this problem at all."""
    eager: Callable[..., Any] | None = None
    """`eager(**inputs)`: what a user of PyTorch would call at the inputs' own type; the reference when None."""

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(problem)

    def config(self, label: str) -> Config:
        """The configuration with that label; KeyError when there is none."""
        return {each.label: each for each in self.configs}[label]

    def launch(self, arguments: Mapping[str, Any], config: Config) -> None:
        """Run the Triton function on these arguments, on the device they are on or in the interpreter."""
        self.fn[self.grid(arguments, config.constants)](
            **arguments,
            **config.constants,
            num_warps=config.num_warps,
            num_stages=config.num_stages,
            **config.options,
        )


@dataclass(frozen=True, kw_only=True)
class Specialised:
    """A signature for one element type: types of all parameters in order, known values, hints by position."""

    types: dict[str, str]
    constants: dict[str, Any]
    attributes: dict[tuple[int], list[list[Any]]]


def specialise(kernel: Kernel, config: Config, dtype: str) -> Specialised:
    """The signature as `triton.compiler.ASTSource` takes it."""
    types, constants, attributes = {}, dict(config.constants), {}
    for place, name in enumerate(parameters(kernel.fn)):
        if name in config.constants:
            types[name] = "constexpr"
            continue
        found = _ARGUMENT.fullmatch(kernel.signature[name])
        assert found  # _problems has looked
        if found["constant"]:
            types[name], constants[name] = "constexpr", int(found["constant"])
            continue
        element = dtype if found["type"] == _PLACEHOLDER else found["type"]
        types[name] = f"{found['pointer']}{element}"
        if found["divisor"]:
            attributes[(place,)] = [["tt.divisibility", int(found["divisor"])]]
    return Specialised(types=types, constants=constants, attributes=attributes)


def parameters(fn: Any) -> list[str]:
    """Names of the parameters of a function under `@triton.jit`, interpreted or not; ValueError for another thing."""
    plain = getattr(fn, "fn", None)
    if not inspect.isfunction(plain):
        hint = "; hand over its .fn and list the configurations in configs" if plain is not None else ""
        raise ValueError(f"fn is no function under @triton.jit but a {type(fn).__name__}{hint}")
    return list(inspect.signature(plain).parameters)


def _problems(kernel: Kernel) -> Sequence[str]:
    """What does not fit together, the first that a person would mend first."""
    told: list[str] = []
    names = parameters(kernel.fn)
    if not kernel.configs:
        return ["configs is empty: give one Config at least"]
    for config in kernel.configs:
        given = [*kernel.signature, *config.constants]
        told += [f"fn has no parameter {name!r}" for name in given if name not in names]
        told += [f"nothing says what {name!r} is: no constant of {config.label}" for name in names if name not in given]
        told += [
            f"{name!r} is a constant and in the signature" for name in config.constants if name in kernel.signature
        ]
    told += [
        f"{name} is a {type(called).__name__}; give a function"
        for name in _FUNCTIONS
        if not callable(called := getattr(kernel, name))
    ]
    labels = [config.label for config in kernel.configs]
    told += [f"two configurations are called {label!r}" for label in {*labels} if labels.count(label) > 1]
    for name, spelled in kernel.signature.items():
        found = _ARGUMENT.fullmatch(spelled)
        if not found or found["divisor"] not in DIVISORS:
            told.append(f"signature: {name!r} is {spelled!r}; write for example *T:16, i32 or fp32")
    told += [
        f"{name!r} is an output and not in the signature" for name in kernel.outputs if name not in kernel.signature
    ]
    told += [] if kernel.outputs else ["outputs is empty: name the parameters that are written"]
    told += [f"the element type {name!r} is not known" for name in kernel.dtypes if name not in TORCH_DTYPES]
    told += [f"no tolerance for {name}" for name in kernel.dtypes if name not in kernel.tolerance]
    told += [] if kernel.dtypes else ["dtypes is empty"]
    told += [] if kernel.shapes else ["shapes is empty: give one small problem at least"]
    return told
