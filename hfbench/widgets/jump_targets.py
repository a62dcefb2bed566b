"""Which letter stands for which region in jump mode."""

from __future__ import annotations

from collections.abc import Sequence

LETTERS = "asdfghjklqwertyuiopzxcvbnm"
"""Nearest fingers first."""


def assign_letters(wishes: Sequence[str]) -> list[str]:
    """A letter for each region, in order; a region that wishes for a free letter gets it.

    Regions beyond the alphabet get none, an empty string.
    """
    taken: set[str] = set()
    letters = [""] * len(wishes)
    for index, wish in enumerate(wishes):
        if len(wish) == 1 and wish in LETTERS and wish not in taken:
            letters[index] = wish
            taken.add(wish)
    free = (letter for letter in LETTERS if letter not in taken)
    return [letter or next(free, "") for letter in letters]
