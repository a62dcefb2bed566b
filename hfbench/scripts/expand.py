"""The matrix of a script as a list of cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from hfbench.scripts.errors import Code, Problems
from hfbench.scripts.parse import Script
from hfbench.scripts.tree import Entry, Plain, Scalar

MAX_CELLS = 10_000
MAX_WORK = 100_000
"""Steps, variables and expectations over all cells."""
MAX_EXCLUDES = 1_000

Identity: TypeAlias = tuple[bool, Plain]


def expand(script: Script, problems: Problems) -> list[dict[str, Scalar]]:
    """Every combination of the axes in the order written, less the excluded; one empty cell without axes.

    An exclusion that names some of the axes leaves out every cell with those values. When the matrix itself is
    wrong the first values stand for all, so that the steps can still be checked.
    """
    present = {name: {_identity(each) for each in axis.values} for name, axis in script.axes.items()}
    excludes = [part for each in script.excludes if (part := _exclusion(each, present, problems))]
    if any(not axis.values for axis in script.axes.values()):
        return [{name: axis.values[0] for name, axis in script.axes.items() if axis.values}]
    first = {name: axis.values[0] for name, axis in script.axes.items()}
    count = math.prod(len(axis.values) for axis in script.axes.values())
    work = count * sum((len(script.variables), *(1 + len(step.expect) for step in script.steps)))
    if count > MAX_CELLS or len(excludes) > MAX_EXCLUDES or work > MAX_WORK:
        problems.add(Code.TOO_MANY_CELLS, script.matrix_span, _too_many(count, len(excludes), work))
        return [first]
    cells = [
        dict(zip(script.axes, values, strict=True))
        for values in itertools.product(*(axis.values for axis in script.axes.values()))
    ]
    kept = _without(cells, excludes)
    if not kept:
        problems.add(Code.NO_CELLS, script.matrix_span, "the exclusions leave no cell of the matrix")
        return [first]
    return kept


def _exclusion(
    entries: Sequence[Entry], present: Mapping[str, set[Identity]], problems: Problems
) -> dict[str, Scalar] | None:
    """The exclusion by axis name; None when it names what is not there."""
    found, sound = {}, True
    for entry in entries:
        name, value = entry.key.text, entry.value
        assert isinstance(value, Scalar), "the parser keeps single values only"
        if name not in present:
            hint = problems.near(name, present) or f"axes: {', '.join(present) or 'none'}"
            problems.add(Code.UNKNOWN_AXIS, entry.key.span, f"there is no axis {name!r} to exclude from", hint)
            sound = False
        elif _identity(value) not in present[name]:
            hint = problems.near(value.text, (str(each) for _, each in present[name]))
            message = f"the axis {name!r} has no value {value.text!r}"
            problems.add(Code.UNKNOWN_AXIS_VALUE, value.span, message, hint)
            sound = False
        else:
            found[name] = value
    return found if sound else None


def _without(cells: list[dict[str, Scalar]], excludes: Sequence[dict[str, Scalar]]) -> list[dict[str, Scalar]]:
    """The cells that no exclusion matches; exclusions over the same axes are looked up together."""
    if not excludes:
        return cells
    places = {name: place for place, name in enumerate(cells[0])}
    unwanted: dict[tuple[int, ...], set[object]] = {}
    for each in excludes:
        at = tuple(sorted(places[name] for name in each))
        row = {places[name]: _identity(scalar) for name, scalar in each.items()}
        unwanted.setdefault(at, set()).add(itemgetter(*at)(row))
    rows = [tuple(map(_identity, cell.values())) for cell in cells]
    found = {number for at, values in unwanted.items() for number in _matching(rows, itemgetter(*at), values)}
    return [cell for number, cell in enumerate(cells) if number not in found]


def _matching(
    rows: Sequence[tuple[Identity, ...]], part: Callable[[tuple[Identity, ...]], object], values: set[object]
) -> Iterator[int]:
    return (number for number, row in enumerate(rows) if part(row) in values)


def _identity(scalar: Scalar) -> Identity:
    """Hashable, and equal for values that are the same: 1 is 1.0 but not true."""
    return isinstance(scalar.value, bool), scalar.value


def _too_many(count: int, excludes: int, work: int) -> str:
    if count > MAX_CELLS:
        return f"the matrix has {count} cells; a script may have {MAX_CELLS}"
    if excludes > MAX_EXCLUDES:
        return f"the matrix has {excludes} exclusions; a script may have {MAX_EXCLUDES}"
    return f"{count} cells make {work} steps, variables and expectations; a script may have {MAX_WORK}"
