"""An output beside its reference: how far apart, where, and whether within tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from hfbench.gpu.kernels.declaration import Tolerance


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The largest differences of an output. `where` is the element that passes its tolerance by most, `worst` its
    |difference| as a share of what is allowed; a NaN or an infinity on one side alone is infinitely far."""

    output: str
    max_abs: float
    max_rel: float
    worst: float
    where: tuple[int, ...]
    found: float
    expected: float
    wrong: int
    """Elements beyond the tolerance."""
    elements: int

    def __str__(self) -> str:
        at = ", ".join(map(str, self.where))
        return (
            f"{self.output}[{at}] is {self.found:.6g}, the reference {self.expected:.6g};"
            f" {self.wrong:,} of {self.elements:,} elements differ by more than is allowed"
        )


def compare(output: str, found: Any, expected: Any, tolerance: Tolerance) -> Difference:
    """Compare elementwise in fp64. ValueError when the shapes differ."""
    if tuple(found.shape) != tuple(expected.shape):
        raise ValueError(f"{output} has the shape {tuple(found.shape)}, the reference {tuple(expected.shape)}")
    out, ref = found.detach().double().cpu(), expected.detach().double().cpu()
    if not out.numel():
        nan = math.nan
        return Difference(
            output=output, max_abs=0, max_rel=0, worst=0, where=(), found=nan, expected=nan, wrong=0, elements=0
        )
    same = (out == ref) | (out.isnan() & ref.isnan())
    apart = (out - ref).abs().masked_fill(same, 0.0).nan_to_num(nan=math.inf, posinf=math.inf)
    allowed = tolerance.absolute + tolerance.relative * ref.abs()
    allowed = torch.where(allowed.isfinite(), allowed, 0.0)
    share = torch.where(same, 0.0, apart / allowed)  # nothing allowed: infinitely far
    place = int(share.argmax())
    relative = torch.where(same, 0.0, apart / ref.abs())
    return Difference(
        output=output,
        max_abs=float(apart.max()),
        max_rel=float(relative.nan_to_num(nan=math.inf).max()),
        worst=float(share.max()),
        where=tuple(int(index) for index in torch.unravel_index(torch.tensor(place), out.shape)),
        found=float(out.flatten()[place]),
        expected=float(ref.flatten()[place]),
        wrong=int((share > 1).sum()),
        elements=out.numel(),
    )
