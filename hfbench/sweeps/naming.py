"""Which cells of a sweep somebody means: by their numbers, or by values of its axes."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.errors import UsageError
from hfbench.sweeps.grid import axis_of
from hfbench.sweeps.model import SweepSnapshot, value_text
from hfbench.text import did_you_mean


def cells_named(snapshot: SweepSnapshot, words: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the cells that are named, in their order: `3` is the third cell, `dtype=bf16 batch=8` are all with
    both values, `batch=4 batch=8` those with either.

    UsageError for a number, an axis or a value that the sweep does not have, and for values that no cell has together.
    """
    numbers, values = set[int](), dict[str, set[str]]()
    for word in words:
        name, equals, text = word.partition("=")
        if equals:
            values.setdefault(name, set()).add(_known(snapshot, name, text))
        else:
            numbers.add(_number(snapshot, word))
    if values:
        told = {each.number: {name: value_text(each.values.get(name)) for name in values} for each in snapshot.cells}
        found = {number for number, has in told.items() if all(has[name] in values[name] for name in values)}
        if not found:
            raise UsageError(f"no cell has {' '.join(w for w in words if '=' in w)}", where=snapshot.name)
        numbers |= found
    return tuple(sorted(numbers))


def _known(snapshot: SweepSnapshot, name: str, text: str) -> str:
    known = [value_text(value) for value in axis_of(snapshot, name).values]
    if text not in known:
        hint = did_you_mean(text, known) or f"values: {', '.join(known[:12])}"
        raise UsageError(f"no cell has {name}={text}", where=snapshot.name, remedy=hint)
    return text


def _number(snapshot: SweepSnapshot, word: str) -> int:
    if not word.isascii() or not word.isdecimal():
        remedy = "give its number, or values as AXIS=VALUE"
        raise UsageError(f"{word!r} names no cell", where=snapshot.name, remedy=remedy)
    number = int(word[:9])
    if not 1 <= number <= len(snapshot.cells):
        found = f"there is no cell {word}" if snapshot.cells else "it has no cell yet"
        raise UsageError(found, where=snapshot.name, remedy=f"hfbench sweep table {snapshot.name} numbers them")
    return number


def cell_in(label: str) -> str:
    """The cell that the label of a sweep's job names: `dtype=bf16 batch=8` of `nightly dtype=bf16 batch=8`; empty where
    it names none."""
    words = label.split(" ")
    first = next((place for place, word in enumerate(words) if word.find("=") > 0), len(words))
    return " ".join(words[first:])


def only_values(cell: str) -> str:
    """A cell by its values alone: `bf16 8` of `dtype=bf16 batch=8`."""
    return " ".join(word.partition("=")[2] or word for word in cell.split(" "))
