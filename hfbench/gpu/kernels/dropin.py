"""`hfbench.gpu.kernel`: a Triton function declared, checked, tuned and called as any function of torch."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.errors import MissingError
from hfbench.gpu.kernels.declaration import Kernel, parameters
from hfbench.gpu.kernels.inspecting import used
from hfbench.gpu.kernels.loading import read
from hfbench.gpu.kernels.torch_op import ShapeOf, register

if TYPE_CHECKING:
    from hfbench.gpu.kernels.interpret import CheckReport

_taken: dict[str, str] = {}
"""Files by the operator that a kernel of theirs is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DropIn(Kernel):
    """A declared kernel that is called with what a caller has: the Triton function on a GPU, the reference on the CPU.

    Outputs that are inputs as well are changed in place; the others are returned. There is no gradient.
    """

    operator: str
    """`namespace::name`, by which torch knows it."""
    tuned: Path | None = None
    """File that `hfbench kernel tune` wrote; there need be none."""
    shape_of: ShapeOf | None = None
    """`shape_of(**inputs)`: the sizes by axis as in `sizes`, by which a tuned configuration is found."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tuned and not self.shape_of:
            raise ValueError("tuned needs shape_of, which says the sizes of a problem by axis")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    @property
    def file(self) -> Path:
        """Where the Triton function is written."""
        return Path(inspect.getfile(self.fn.fn)).absolute()

    @cached_property
    def op(self) -> Any:
        """The operator of torch; MissingError without torch, ValueError when another file has one of that name."""
        if importlib.util.find_spec("torch") is None:
            raise MissingError(
                "needs torch, which this Python lacks",
                where=self.name,
                remedy="install it with: pip install 'hfbench[torch,triton]'",
            )
        from hfbench.gpu.kernels.choosing import Chooser

        file = str(self.file)
        if _taken.get(self.operator, file) != file:
            raise ValueError(
                f"{self.operator} is a kernel of {_taken[self.operator]}; give this one operator='mine::{self.name}'"
            )
        registered = register(self.operator, self, Chooser(self, self.file, self.tuned), self.shape_of)
        _taken[self.operator] = file
        return registered

    def check(self, **how: Any) -> CheckReport:
        """Every case in Triton's interpreter, in processes that load its file; `how` is that of `interpret_all`.

        BrokenKernel when the file declares other kernels too and not this one as its `KERNEL`.
        """
        from hfbench.gpu.kernels.interpret import interpret_all

        return interpret_all(read(self.file), **how)


def kernel(
    *, operator: str = "", tuned: str | Path | None = None, shape_of: ShapeOf | None = None, **declared: Any
) -> Callable[[Any], DropIn]:
    """Declare the function below `@triton.jit` with the fields of `Kernel`, and make it an operator of torch.

    `name` is that of the function, without `_kernel`, when it is not given. `operator` is `hfbench::NAME` by default; a
    relative `tuned` lies beside the file. ValueError names what does not fit together.
    """

    def decorate(fn: Any) -> DropIn:
        parameters(fn)
        fields = dict(declared)
        name = fields.pop("name", "") or fn.fn.__name__.removesuffix("_kernel")
        beside = Path(inspect.getfile(fn.fn)).parent.absolute()
        dropin = DropIn(
            **fields,
            name=name,
            fn=fn,
            operator=operator or f"hfbench::{name}",
            tuned=beside / tuned if tuned else None,
            shape_of=shape_of,
        )
        if used() and importlib.util.find_spec("torch"):
            _ = dropin.op  # now, for a compiler that meets it first can make no operator
        return dropin

    return decorate
