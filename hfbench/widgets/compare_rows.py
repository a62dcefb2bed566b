"""A comparison as rows: what differs between the two first, then a row a metric with its verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hfbench.text import printable
from hfbench.units import show_ago, show_value
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

if TYPE_CHECKING:
    from hfbench.compare.result import CellComparison, CompareResult, Difference, MetricVerdict, Pair, Side

WORDS: dict[str, State] = {"FASTER": "ok", "SLOWER": "error", "SAME": "", "UNDECIDED": "unknown"}
DIFFERS = "differs"


def columns_of(pair: Pair) -> tuple[Column, ...]:
    """The columns of one pair; a column for cells where there are several."""
    cells = (Column("cell", "Cell", flexible=True, min=8, max=36),) if len(pair.cells) > 1 else ()
    return (
        *cells,
        Column("what", "What", flexible=True, min=12, max=32, middle=True),
        Column("a", pair.a.letter, align="right", flexible=True, min=10, max=24, middle=True),
        Column("b", pair.b.letter, align="right", flexible=True, min=10, max=24, middle=True),
        Column("ratio", f"{pair.b.letter}/{pair.a.letter}", align="right"),
        Column("interval", "95 %", priority=1),
        Column("word", "Verdict", min=11),
        Column("spoiled", "Spoiled by", priority=2, flexible=True, min=12, max=200),
    )


def records_of(pair: Pair, glyphs: Glyphs) -> list[Record]:
    """Differences, then metrics cell by cell, then cells that only one side has."""
    rows = [_difference(number, each, glyphs) for number, each in enumerate(pair.differences)]
    for at, cell in enumerate(pair.cells):
        rows += [_metric(at, number, cell, each, glyphs) for number, each in enumerate(cell.metrics)]
        if not cell.metrics:
            note = cell.note or "no metric that both have"
            rows.append(Record(f"cell:{at}", {"cell": cell.label, "what": "not compared", "spoiled": note}))
    for letter, labels in ((pair.a.letter, pair.only_a), (pair.b.letter, pair.only_b)):
        for number, label in enumerate(labels):
            cells = {"cell": label, "what": f"only in {letter}", "word": f"{glyphs.sign('warn')} no pair"}
            rows.append(Record(f"only:{letter}:{number}", cells, {"word": "warn"}))
    return rows


def _difference(number: int, each: Difference, glyphs: Glyphs) -> Record:
    cells = {
        "what": each.name,
        "a": each.a or "-",
        "b": each.b or "-",
        "word": f"{glyphs.sign('warn')} {DIFFERS}",
        "spoiled": each.about,
    }
    return Record(f"difference:{number}", cells, {"word": "warn", "spoiled": "muted"})


def _metric(at: int, number: int, cell: CellComparison, each: MetricVerdict, glyphs: Glyphs) -> Record:
    state = WORDS.get(str(each.word), "unknown")
    sign = glyphs.sign(state)
    cells = {
        "cell": cell.label,
        "what": each.metric,
        "a": show_value(each.a, each.unit),
        "b": show_value(each.b, each.unit),
        "ratio": "-" if each.ratio is None else f"{each.ratio:.3f}x",
        "interval": interval_text(each),
        "word": f"{sign or '='} {each.word}" + (" !" if each.spoiled else ""),
        "spoiled": ", ".join(each.spoiled) or each.reason,
    }
    states: dict[str, State] = {"word": state, "interval": "muted", "spoiled": "warn" if each.spoiled else "muted"}
    return Record(f"metric:{at}:{number}", cells, states, {"ratio": each.ratio, "a": each.a, "b": each.b})


def interval_text(each: MetricVerdict) -> str:
    """Both ends of the ratio's interval; empty where it has none."""
    return "" if each.low is None or each.high is None else f"{each.low:.3f}..{each.high:.3f}"


# -- lines --------------------------------------------------------------------


def side_lines(result: CompareResult, pair: Pair, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """Both sides, and what is compared."""
    facts = [Fact(side.letter, _side(side)) for side in (pair.a, pair.b)]
    state: State = "error" if pair.refused else "muted"
    facts.append(Fact("", pair.sentence, state))
    counted = ", ".join(f"{count} {word}" for word, count in pair.count().items() if count)
    others = (
        f"; pair {result.pairs.index(pair) + 1} of {len(result.pairs)}, n shows the next"
        if len(result.pairs) > 1
        else ""
    )
    if counted:
        facts.append(Fact("so", f"{pair.b.letter}: {counted}{others}"))
    return facts_lines(facts, width, glyphs)


def _side(side: Side) -> str:
    model = printable(side.model.rstrip("/").rpartition("/")[2])
    made = show_ago(time.time() - side.made) if side.made else ""
    cells = f"{side.cells} cells" if side.cells > 1 else ""
    state = "" if side.state == "finished" else side.state
    return "  ".join(filter(None, (side.title, model, cells, state, made, side.headline)))


def detail_lines(result: CompareResult, pair: Pair, key: str, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """The row under the cursor in full, then how intervals were made."""
    facts = [*_row_facts(pair, key)]
    lines = facts_lines(facts, width, glyphs)
    told = [*(Fact("method", result.method, "muted") for _ in (1,) if result.method)]
    told += [Fact("note", note, "warn") for side in (pair.a, pair.b) for note in side.notes]
    told += [Fact("note", note, "muted") for note in result.notes]
    told += [Fact("lacks", note, "unknown") for cell in pair.cells for note in cell.lacking]
    return lines + ([[], *facts_lines(told, width, glyphs)] if told else [])


def _row_facts(pair: Pair, key: str) -> Iterator[Fact]:
    kind, _, place = key.partition(":")
    if kind == "difference":
        each = pair.differences[int(place)]
        yield Fact(each.about, each.name)
        yield Fact(pair.a.letter, each.a or "absent")
        yield Fact(pair.b.letter, each.b or "absent")
    elif kind == "metric":
        at, number = map(int, place.split(":"))
        cell = pair.cells[at]
        yield from _metric_facts(pair, cell, cell.metrics[number])
    elif kind == "cell" and pair.cells[int(place)].note:
        yield Fact("note", pair.cells[int(place)].note)


def _metric_facts(pair: Pair, cell: CellComparison, each: MetricVerdict) -> Iterator[Fact]:
    yield Fact("metric", f"{each.metric}, {each.better} is better" + (f"  ({cell.label})" if cell.label else ""))
    yield Fact("verdict", str(each.word), WORDS.get(str(each.word), "unknown"))
    if each.reason:
        yield Fact("", each.reason)
    for spoiler in each.spoiled:
        yield Fact("spoiled by", spoiler, "warn")
    if each.would_be:
        yield Fact("", f"without that it would have been {each.would_be}")
    yield Fact(pair.a.letter, f"{show_value(each.a, each.unit)}, n {each.n_a:,}")
    yield Fact(pair.b.letter, f"{show_value(each.b, each.unit)}, n {each.n_b:,}")
    if each.ratio is not None:
        interval = f", 95 % within {interval_text(each)}" if each.low is not None else ""
        yield Fact("ratio", f"{each.ratio:.4f}x{interval}, {each.method}")
