"""A comparison as lines for a terminal: what differs, a table a pair, the conditions, the method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hfbench.compare.judging import IN_TURNS
from hfbench.compare.result import (
    NOTHING_COMPARED,
    CellComparison,
    CompareResult,
    Condition,
    MetricVerdict,
    Outcome,
    Pair,
    Side,
    Word,
)
from hfbench.line_width import cut, cut_end, paragraph
from hfbench.models.problem import counted
from hfbench.text import cells, printable
from hfbench.units import show_seconds, show_value

LABEL = 9
NAME = 15
"""Cells of a metric's name; a longer one has a line of its own."""
VALUE = 9
LEAST_SHOWN, MOST_SHOWN = 1e-15, 1e18
"""Values between which units are spelled out; no machine gives others."""
MOST_PLACES = 8
"""Cells that only one side has which are named."""
HEAD = f"{'metric':<{NAME}}{'A':>{VALUE}} {'B':>{VALUE}}  {'B/A':>6} {'95%':<14}  verdict"


def headline(result: CompareResult) -> str:
    """`B: 4 SLOWER, 2 SAME`; conditions that hold come first."""
    told = []
    failing = sum(each.outcome is Outcome.FAILS for each in result.conditions)
    unknown = sum(each.outcome is Outcome.UNDECIDED for each in result.conditions)
    if failing:
        told.append(f"{counted(failing, 'condition')} failed")
    if unknown:
        told.append(f"{counted(unknown, 'condition')} undecided")
    for pair in result.pairs:
        words = [f"{count} {word}" for word, count in pair.count().items() if count]
        told.append(f"{pair.b.letter}: {', '.join(words)}" if words else f"{pair.b.letter}: not compared")
    return "; ".join(told)


def lines(result: CompareResult) -> list[str]:
    """Everything a comparison says, for people."""
    told = [line for side in result.sides for line in _side(side)]
    for pair in result.pairs:
        told += ["", *_pair(pair)]
    if result.conditions:
        told += [
            "",
            *(line for each in result.conditions for line in condition_lines(each)),
        ]
        told += [] if result.compared else wrapped("fails", NOTHING_COMPARED)
    told += ["", *wrapped("method", result.method)] if result.method else []
    return told + [line for note in result.notes for line in wrapped("note", note)]


def _side(side: Side) -> Iterator[str]:
    given = f"({side.given})" if side.given not in side.title else ""
    what = printable(" ".join(filter(None, (side.kind, side.title, given))))
    more = [printable(side.model)] if side.model else []
    more += [counted(side.cells, "cell")] if side.cells > 1 else []
    more += [printable(side.state)] if side.state != "finished" else []
    yield cut_end(f"{side.letter}        {what}{': ' if more else ''}{', '.join(more)}")
    for note in side.notes:
        yield from wrapped("", note)


def _pair(pair: Pair) -> Iterator[str]:
    about = f"{pair.b.letter}/A"
    yield from wrapped(about, pair.sentence)
    for each in pair.differences:
        a, b = (printable(text) or "-" for text in (each.a, each.b))
        yield from wrapped("", f"{each.about}: {printable(each.name)}: {a} -> {b}")
    if pair.refused:
        return
    for cell in pair.cells:
        yield ""
        yield from _cell(cell, pair.b.letter)
    for letter, places in (("A", pair.only_a), (pair.b.letter, pair.only_b)):
        if places:
            more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
            yield from wrapped(f"only {letter}", "; ".join(map(printable, places[:MOST_PLACES])) + more)


def _cell(cell: CellComparison, letter: str) -> Iterator[str]:
    if cell.label:
        yield cut(printable(cell.label))
    if cell.note:
        yield from wrapped("", cell.note)
        return
    yield from metric_lines(cell.metrics, letter)
    for lack in cell.lacking:
        yield from wrapped("", lack)


def metric_lines(metrics: tuple[MetricVerdict, ...], letter: str) -> Iterator[str]:
    """A table of verdicts, and below it what spoils them or leaves them open."""
    yield HEAD.replace("B", letter)
    for each in metrics:
        yield from _metric(each)
    if any(each.method == IN_TURNS for each in metrics):
        yield from wrapped("", f"{letter}/A is the median of the rounds' ratios, not the ratio of the medians")
    for reason, names in reasons_of(metrics).items():
        yield from wrapped("", f"{', '.join(names)}: {reason}")


def condition_lines(condition: Condition) -> Iterator[str]:
    """A condition, how it went, and why."""
    yield from wrapped(str(condition.outcome), printable(condition.text))
    for each in condition.details:
        yield from wrapped("", each)


def _metric(verdict: MetricVerdict) -> Iterator[str]:
    name = printable(verdict.metric)
    wide = cells(name) >= NAME
    if wide:
        yield cut(name)
    ratio = "-" if verdict.ratio is None else _share(verdict.ratio)
    interval = (
        f"{_share(verdict.low)}..{_share(verdict.high)}"
        if verdict.low is not None and verdict.high is not None
        else "-"
    )
    a, b = (_shown(value, verdict.unit) for value in (verdict.a, verdict.b))
    word = f"{verdict.word}{f' ({verdict.would_be})' if verdict.would_be else ''}"
    yield f"{'' if wide else name:<{NAME}}{a:>{VALUE}} {b:>{VALUE}}  {ratio:>6} {interval:<14}  {word}"


def _share(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 1000 else f"{ratio:.3g}"


def _shown(value: float, unit: str) -> str:
    if value and not LEAST_SHOWN < abs(value) < MOST_SHOWN:
        return f"{value:.3g} {unit}"
    return show_seconds(value) if unit == "s" else show_value(value, "" if unit.endswith("/s") else unit)


def reasons_of(verdicts: Iterable[MetricVerdict]) -> dict[str, list[str]]:
    """What spoils verdicts or leaves them open, each sentence once with the metrics it is about."""
    found: dict[str, list[str]] = {}
    for each in verdicts:
        open_end = [each.reason] if each.word is Word.UNDECIDED and each.reason and not each.would_be else []
        for sentence in (*open_end, *each.spoiled):
            names = found.setdefault(printable(sentence), [])
            if (name := printable(each.metric)) not in names:
                names.append(name)
    return found


def wrapped(label: str, text: str) -> list[str]:
    """A labelled sentence over as many lines as it takes."""
    return paragraph(
        printable(text), first=f"{label:<{LABEL}}" if len(label) < LABEL else f"{label} ", later=" " * LABEL
    )
