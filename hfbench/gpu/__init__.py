"""GPUs: what they do, what runs on them and how fast. `hfbench.gpu.kernel` declares a Triton function of your own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hfbench.gpu.kernels.dropin import kernel

__all__ = ["kernel"]


def __getattr__(name: str) -> object:
    """Only who asks for the decorator loads it: front ends import this package too."""
    if name == "kernel":
        from hfbench.gpu.kernels.dropin import kernel

        return kernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
