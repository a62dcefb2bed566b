"""Folds tensor names that differ only in their numbers into one: `model.layers.*.mlp.down_proj.weight`."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

LONGEST_NUMBER = 9
"""Digits of a number that can be one of a run."""

_NUMBER_IN_LINES = re.compile(r"(?<![^.\n])[0-9]+(?![^.\n])").sub
_NUMBER = re.compile(r"(?<![^.])[0-9]+(?![^.])").sub


def fold(names: Sequence[str]) -> list[str]:
    """Each name with every dotted part that is a number replaced by `*`: `layers.3.w1` -> `layers.*.w1`.

    All at once, because one by one costs twice as much.
    """
    folded = _NUMBER_IN_LINES("*", "\n".join(names)).split("\n")
    return folded if len(folded) == len(names) else [_NUMBER("*", name) for name in names]  # a name with a line end


def fold_numbers(names: Sequence[str]) -> str:
    """One name for names of one fold, with the numbers that vary: `layers.{0-3,5}.w1`.

    Where several parts vary, which numbers go together is not said.
    """
    parts = list(zip(*(name.split(".") for name in names), strict=True))
    return ".".join(each[0] if len(set(each)) == 1 else f"{{{_ranges(set(each))}}}" for each in parts)


def _ranges(numbers: Set[str]) -> str:
    """`0-3,5`; numbers too long to be layers stand as they are."""
    long = sorted(each for each in numbers if len(each) > LONGEST_NUMBER)
    runs = list[list[int]]()
    for number in sorted({int(each) for each in numbers if len(each) <= LONGEST_NUMBER}):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    told = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return ",".join([*told, *long])
