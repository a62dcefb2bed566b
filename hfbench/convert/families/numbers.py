"""Numbers of a configuration that are no sizes, such as a dropout or the epsilon of a norm."""

from __future__ import annotations

from hfbench.errors import UsageError
from hfbench.models.problem import quoted


def fraction(value: object, name: str) -> float:
    """A number from 0 to 1, 0 for null; UsageError when it is anything else."""
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise UsageError(f"{name} is {quoted(value)}, a number from 0 to 1 is needed", where="config.json")
    return float(value)
