"""kernel.list: the kernels hfbench brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.line_width import cut_end

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class ShippedKernel:
    """A kernel file by the name other commands take."""

    name: str
    summary: str
    file: str


@dataclass(frozen=True, kw_only=True)
class KernelListResult:
    """Every kernel in the library."""

    kernels: tuple[ShippedKernel, ...]

    def lines(self) -> list[str]:
        """One line a kernel, as wide as the terminal."""
        width = max(len(each.name) for each in self.kernels) + 2
        return [cut_end(f"{each.name:<{width}}{each.summary}") for each in self.kernels]


@action("kernel.list", result=KernelListResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class KernelList:
    """List the Triton kernels that hfbench brings."""

    def perform(self, run: Run) -> KernelListResult:
        """Read the library's docstrings; nothing is imported."""
        from hfbench.gpu.kernels.loading import read, shipped

        found = [read(path) for path in shipped().values()]
        return KernelListResult(
            kernels=tuple(ShippedKernel(name=each.name, summary=each.summary, file=str(each.path)) for each in found)
        )
