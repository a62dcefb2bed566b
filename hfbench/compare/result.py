"""What a comparison says: sides, differences of their settings and machines, a verdict a metric, conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hfbench.compare.subject import value_word

NOTHING_COMPARED = "--fail-if was given and nothing was compared: that is a failure, exit 1"


class Word(StrEnum):
    """What can be said of B against A. Faster is better: for a throughput it means more of it."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    UNDECIDED = "UNDECIDED"


class Outcome(StrEnum):
    """How a condition of `--fail-if` went."""

    FAILS = "fails"
    PASSES = "passes"
    UNDECIDED = "undecided"
    NOT_ASKED = "not asked"
    """Of one place, where the candidate has what A lacks: no reason to fail, and said."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One thing that is compared. `letter` is how tables call it: A is what the others are measured against."""

    letter: str
    given: str
    """As it was asked for: an id, a name, a path."""
    kind: str
    """`job`, `sweep`, `baseline`, `script` or `file`."""
    title: str
    """`bench.generate 3f9a1c`, or the name of a sweep or baseline."""
    action: str
    model: str
    state: str
    """`finished`, or what else became of it."""
    made: float | None
    """Seconds since the epoch."""
    cells: int
    """1 unless it is a sweep or a script."""
    headline: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Something in which two sides are not alike, before any figure is compared. An absent value is empty."""

    about: str
    """`model`, `setting`, `hardware`, `software` or `machine`, the weightiest first."""
    name: str
    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class MetricVerdict:
    """One metric of B against A: medians in `unit`, and B's as a share of A's with its 95 % interval."""

    metric: str
    """Its path in the result without `metrics`: `tpot`, `rows.compile.tpot`."""
    unit: str
    better: str
    """`lower` or `higher`."""
    a: float
    b: float
    ratio: float | None
    """B / A as measured, 0.5 for half the time and for half the throughput; None when A is zero."""
    low: float | None
    high: float | None
    word: Word
    method: str
    """`in turns`, `apart`, `from intervals` or `single figures`: how the interval was made."""
    n_a: int
    n_b: int
    reason: str = ""
    """Why it is undecided."""
    spoiled: tuple[str, ...] = ()
    """What speaks against believing it: drift, throttling, outliers, neighbours, few samples."""
    would_be: str = ""
    """The word it would have had, had nothing spoiled it."""


@dataclass(frozen=True, kw_only=True)
class CellComparison:
    """One cell of both sides: `values` are its place in the sweep, empty for two jobs."""

    values: dict[str, Any]
    metrics: tuple[MetricVerdict, ...]
    note: str = ""
    """Why nothing was compared here, or what lacks."""
    lacking: tuple[str, ...] = ()
    """Metrics that one of the two has and the other lacks, and samples that cannot be used, as sentences."""

    @property
    def label(self) -> str:
        """`batch=4 dtype=bf16`; empty for two jobs."""
        return " ".join(f"{name}={value_word(value)}" for name, value in self.values.items())


@dataclass(frozen=True, kw_only=True)
class Pair:
    """B against A."""

    a: Side
    b: Side
    sentence: str
    """What is being compared, and whether that makes sense."""
    refused: bool = False
    """No figure was compared: `sentence` says why."""
    differences: tuple[Difference, ...] = ()
    cells: tuple[CellComparison, ...] = ()
    only_a: tuple[str, ...] = ()
    """Labels of cells that B lacks."""
    only_b: tuple[str, ...] = ()

    @property
    def verdicts(self) -> Iterator[MetricVerdict]:
        """All verdicts of all cells."""
        return (each for cell in self.cells for each in cell.metrics)

    def count(self) -> dict[Word, int]:
        """How many verdicts of each word there are."""
        counted = Counter(each.word for each in self.verdicts)
        return {word: counted[word] for word in Word}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One `--fail-if`, with a sentence for every cell that did not pass."""

    text: str
    outcome: Outcome
    details: tuple[str, ...] = ()


def failing(conditions: Iterable[Condition], *, strict: bool) -> bool:
    """Whether conditions fail a gate; `strict` where one that could not be told does."""
    bad = (Outcome.FAILS, Outcome.UNDECIDED) if strict else (Outcome.FAILS,)
    return any(each.outcome in bad for each in conditions)


@dataclass(frozen=True, kw_only=True)
class CompareResult:
    """Everything a comparison says."""

    sides: tuple[Side, ...]
    pairs: tuple[Pair, ...]
    """B against A, C against A, and so on."""
    conditions: tuple[Condition, ...] = ()
    method: str = ""
    """How intervals were made and what counts as the same, in a sentence or two."""
    notes: tuple[str, ...] = field(default=())
    strict: bool = False
    """Whether a condition that could not be told counts as failed."""

    @property
    def open_conditions(self) -> list[str]:
        """A sentence for each condition that could not be told: it must not pass in silence."""
        unknown = [each for each in self.conditions if each.outcome is Outcome.UNDECIDED]
        told = [f"{each.text}: {each.outcome}; {'; '.join(each.details[:3])}" for each in unknown]
        return [*told, NOTHING_COMPARED] if self.conditions and not self.compared else told

    @property
    def compared(self) -> bool:
        """Whether a single figure was compared."""
        return not all(pair.refused for pair in self.pairs)

    @property
    def failed(self) -> bool:
        """Whether a condition of `--fail-if` holds, or a candidate lacks what it is asked of."""
        return failing(self.conditions, strict=self.strict)

    @property
    def exit(self) -> int:
        """0, or 1 when it failed."""
        return int(self.failed)

    @property
    def headline(self) -> str:
        """`B: 4 SLOWER, 2 SAME`, with the conditions that did not pass."""
        from hfbench.compare.lines import headline

        return headline(self)

    def lines(self) -> list[str]:
        """Differences first, then a table a pair, then the conditions."""
        from hfbench.compare.lines import lines

        return lines(self)
