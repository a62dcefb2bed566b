"""What an environment said of itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hfbench.errors import MissingError

LEAST_PYTHON = (3, 11)
"""What hfbench itself is written for; an older Python tells its versions and runs nothing."""


@dataclass(frozen=True, kw_only=True)
class Torch:
    """What torch was built for; what it only tells when it is imported is empty where that failed."""

    version: str
    cuda: str = ""
    """The CUDA it was built with, empty for a build without."""
    hip: str = ""
    arch_list: tuple[str, ...] = ()
    """Compute capabilities its kernels were compiled for: `sm_90`."""
    cxx11_abi: bool | None = None
    nccl: str = ""
    cudnn: str = ""


@dataclass(frozen=True, kw_only=True)
class Probed:
    """Versions and modules of one environment; `trouble` is a sentence where it could not tell all of it."""

    python: str = ""
    """`3.12.4`; empty when it said nothing."""
    implementation: str = ""
    executable: str = ""
    machine: str = ""
    glibc: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    """Installed versions by distribution name: `torch`, `tensorrt`, `vllm`, ...; absent is not installed."""
    modules: tuple[str, ...] = ()
    """Names that can be imported, without those of the standard library."""
    folders: tuple[str, ...] = ()
    """Where its packages lie."""
    torch: Torch | None = None
    trouble: str = ""
    seconds: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether it told its versions, though perhaps not all."""
        return bool(self.python)

    def require_answer(self, name: str) -> None:
        """MissingError with its trouble unless it told its versions."""
        if not self.answered:
            raise MissingError(self.trouble or "does not answer", where=f"environment {name}")

    @property
    def old(self) -> bool:
        """Whether its Python is too old for hfbench's worker."""
        numbers = tuple(int(part) for part in self.python.split(".")[:2] if part.isdecimal())
        return self.answered and numbers < LEAST_PYTHON

    def lacks(self, needs: Iterable[str]) -> tuple[str, ...]:
        """Those of the modules that cannot be imported there."""
        there = set(self.modules)
        return tuple(name for name in needs if name.partition(".")[0] not in there)
