"""The part of a report that compares: what differs, the verdicts, the ratios with their intervals, the conditions."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.compare.judging import WITHIN
from hfbench.compare.lines import reasons_of
from hfbench.compare.result import CellComparison, CompareResult, MetricVerdict, Outcome, Pair, Word
from hfbench.reports.document import Block, Cell, Facts, Points, RatioPlot, Section, Table, Text, Tone
from hfbench.reports.drawable import drawn_or_told
from hfbench.text import printable
from hfbench.units import show_value

TONES: dict[Word, Tone] = {Word.FASTER: "good", Word.SLOWER: "bad", Word.SAME: "", Word.UNDECIDED: "open"}
OUTCOMES: dict[Outcome, Tone] = {
    Outcome.PASSES: "good",
    Outcome.FAILS: "bad",
    Outcome.UNDECIDED: "open",
    Outcome.NOT_ASKED: "open",
}
MOST_RATIOS = 40


def comparison_sections(result: CompareResult) -> list[Section]:
    """A section a pair, then the conditions."""
    sections = [
        Section(title=f"{pair.b.letter} against {pair.a.letter}", blocks=tuple(_pair(pair, result)))
        for pair in result.pairs
    ]
    if result.conditions:
        rows = tuple(
            (
                Cell(printable(each.text)),
                Cell(str(each.outcome), OUTCOMES[each.outcome]),
                Cell(printable("; ".join(each.details))),
            )
            for each in result.conditions
        )
        table = Table(columns=("must not be", "outcome", "what was seen"), rows=rows)
        sections.append(Section(title="Conditions", blocks=(table,)))
    return sections


def _pair(pair: Pair, result: CompareResult) -> Iterator[Block]:
    sides = tuple(
        (side.letter, printable(f"{side.kind} {side.title}, {side.model or side.action}")) for side in (pair.a, pair.b)
    )
    yield Facts(rows=sides)
    yield Text(text=printable(f"{pair.sentence}."), tone="open" if pair.refused else "")
    if pair.differences:
        rows = tuple(
            (
                Cell(each.about),
                Cell(printable(each.name)),
                Cell(printable(each.a or "-")),
                Cell(printable(each.b or "-")),
            )
            for each in pair.differences
        )
        yield Table(columns=("about", "what differs", pair.a.letter, pair.b.letter), rows=rows)
    if pair.refused:
        return
    yield _verdicts(pair)
    if plot := _ratios(pair):
        yield drawn_or_told(plot)
    if told := reasons_of(pair.verdicts):
        yield Text(text="What speaks against certainty:")
        yield Points(texts=tuple(f"{reason} ({', '.join(names)})" for reason, names in told.items()))
    for letter, places in ((pair.a.letter, pair.only_a), (pair.b.letter, pair.only_b)):
        if places:
            yield Text(text=printable(f"Only {letter} has {'; '.join(places)}."))
    for note in dict.fromkeys(filter(None, (note for cell in pair.cells for note in (cell.note, *cell.lacking)))):
        yield Text(text=printable(f"{note}."), tone="open")
    if result.method:
        yield Text(text=printable(f"Method: {result.method}."), tone="quiet")


def _verdicts(pair: Pair) -> Table:
    several = any(cell.label for cell in pair.cells)
    rows = tuple(
        (*((Cell(printable(cell.label)),) if several else ()), *_row(each))
        for cell in pair.cells
        for each in cell.metrics
    )
    columns = ("metric", pair.a.letter, pair.b.letter, f"{pair.b.letter}/{pair.a.letter}", "95 %", "verdict")
    return Table(
        columns=("cell", *columns) if several else columns,
        rows=rows,
        numeric=frozenset(range(1 + several, 5 + several)),
    )


def _row(verdict: MetricVerdict) -> tuple[Cell, ...]:
    known = verdict.low is not None and verdict.high is not None
    word = f"{verdict.word} (would be {verdict.would_be})" if verdict.would_be else str(verdict.word)
    return (
        Cell(printable(verdict.metric)),
        Cell(show_value(verdict.a, verdict.unit)),
        Cell(show_value(verdict.b, verdict.unit)),
        Cell("-" if verdict.ratio is None else f"{verdict.ratio:.3f}"),
        Cell(f"{verdict.low:.3f} .. {verdict.high:.3f}" if known else "-"),
        Cell(word, TONES[verdict.word]),
    )


def _ratios(pair: Pair) -> RatioPlot | None:
    shown = [(cell, each) for cell in pair.cells for each in cell.metrics if each.ratio][:MOST_RATIOS]
    if not shown:
        return None
    return RatioPlot(
        title=f"{pair.b.letter} as a share of {pair.a.letter}, with 95 % intervals",
        names=tuple(_name(cell, each) for cell, each in shown),
        ratios=tuple((each.ratio or 1.0, each.low, each.high) for _, each in shown),
        words=tuple(str(each.word) for _, each in shown),
        within=WITHIN,
    )


def _name(cell: CellComparison, verdict: MetricVerdict) -> str:
    way = "more is better" if verdict.better == "higher" else ""
    return printable(" ".join(filter(None, (cell.label, verdict.metric, f"({way})" if way else ""))))
