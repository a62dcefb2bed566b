"""What is close between two dtypes: as far apart as rounding one number to both would bring its copies."""

from __future__ import annotations

from hfbench.models.diff.facts import Tolerance

RTOL, ATOL = 1e-5, 1e-8
"""Of values in one dtype, and what every tolerance grants at least."""

ROUNDED: dict[str, tuple[int, float]] = {
    "F64": (53, 2.0**-1074),
    "F32": (24, 2.0**-149),
    "F16": (11, 2.0**-24),
    "BF16": (8, 2.0**-133),
    "F8_E4M3": (4, 2.0**-9),
    "F8_E5M2": (3, 2.0**-16),
    "F8_E4M3FNUZ": (4, 2.0**-10),
    "F8_E5M2FNUZ": (3, 2.0**-17),
}
"""Bits of the mantissa with the hidden one, and the smallest number: rounding to the nearest moves x by at most
2^-bits |x| or half the smallest number."""

STEP_OF_INTEGERS = 1.0


def tolerance(
    a: str, b: str, *, scaled: bool = False, rtol: float | None = None, atol: float | None = None
) -> Tolerance:
    """The tolerance between two dtypes; what is given takes the place of what follows from them.

    Of scaled values both sides are taken as rounded, also where they share a dtype.
    """
    names = a if a == b else " and ".join(sorted((a, b)))
    dtypes = f"scaled {names}" if scaled else names
    if rtol is not None or atol is not None:
        told = RTOL if rtol is None else rtol, ATOL if atol is None else atol
        return Tolerance(dtypes=dtypes, name="as asked for", rtol=told[0], atol=told[1])
    rounded = [each for each in (a, b) if each in ROUNDED] if a != b or scaled else []
    coarse = [each for each in rounded if 2.0 ** -ROUNDED[each][0] > RTOL]
    relative = max(RTOL, sum(2.0 ** -ROUNDED[each][0] for each in coarse))
    absolute = sum(ROUNDED[each][1] / 2 for each in coarse)
    if scaled:  # whole numbers are as far apart everywhere
        absolute += sum(STEP_OF_INTEGERS / 2 for each in (a, b) if each == "I8")
    name = " and ".join(f"one rounding to {each}" for each in coarse)
    return Tolerance(dtypes=dtypes, name=name or "the usual", rtol=relative, atol=max(ATOL, absolute))
