"""Measures the values of all pairs, and finds tensors again by what they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hfbench.models.diff.facts import Tolerance, ValueDiff
from hfbench.models.diff.moved import find_moved
from hfbench.models.diff.opened import Subject
from hfbench.models.diff.tensors import Pairing
from hfbench.models.diff.values import ValueComparison
from hfbench.models.problem import ModelError, Problem

Done = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """The values of the pairs, in order, and the pairing with the tensors that their bytes told."""

    pairing: Pairing
    values: tuple[ValueDiff, ...]
    tolerances: tuple[Tolerance, ...]
    problems: tuple[Problem, ...]


def measure_values(
    one: Subject, other: Subject, pairing: Pairing, *, rtol: float | None, atol: float | None, done: Done
) -> Measured:
    """Compare the values; `done` is told bytes of A and their total.

    What was measured before a file gave out is kept, and MissingError raised when numpy is needed and not there.
    """
    a, b = one.checkpoint, other.checkpoint
    sizes, passed, values, problems = a.columns.sizes, 0, list[ValueDiff](), list[Problem]()
    total = sum(sizes[row] for row, _ in pairing.pairs)

    def count(size: int) -> None:
        nonlocal passed
        passed += size
        done(passed, total)

    settings = one.quantization, other.quantization
    comparison = ValueComparison(a, b, rtol=rtol, atol=atol, settings=settings, done=count)
    try:
        with comparison:
            pairing = _with_moved(comparison, pairing)
            total = sum(sizes[row] for row, _ in pairing.pairs)
            for pair in pairing.pairs:
                if value := comparison.compare(*pair):
                    values.append(value)
    except ModelError as error:
        problems.append(error.problem())
    return Measured(pairing, tuple(values), comparison.tolerances, tuple(problems))


def _with_moved(comparison: ValueComparison, pairing: Pairing) -> Pairing:
    pairs, renames, clashes = find_moved(comparison.columns, comparison.weights, pairing.removed, pairing.added)
    gone, come = {row for row, _ in pairs}, {row for _, row in pairs}
    return replace(
        pairing,
        pairs=tuple(sorted((*pairing.pairs, *pairs))),
        removed=tuple(row for row in pairing.removed if row not in gone),
        added=tuple(row for row in pairing.added if row not in come),
        renamed=(*pairing.renamed, *renames),
        clashes=(*pairing.clashes, *clashes),
    )
