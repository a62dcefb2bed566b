"""A report as Markdown: tables and text, for pull requests and notebooks. Pictures are in the HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hfbench.reports.document import Block, Cell, Code, Document, Facts, Points, Table, Text

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$!])")


def markdown(document: Document) -> str:
    """The whole report, ending in a line end."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"# {escaped(document.title)}"
    yield from ("", escaped(document.subtitle))
    for warning in document.warnings:
        yield from ("", f"> **{escaped(warning)}**")
    if document.figures:
        yield ""
        for figure in document.figures:
            note = f" ({escaped(figure.note)})" if figure.note else ""
            yield f"- **{escaped(figure.name)}** {escaped(figure.value)}{note}"
    for section in document.sections:
        if told := [line for block in section.blocks for line in _block(block)]:
            yield from ("", f"## {escaped(section.title)}", *told)
    yield from ("", f"{escaped(document.footer)}, {escaped(document.made)}")


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield from ("", escaped(block.text))
        case Facts():
            yield from _table(("", ""), [tuple(map(Cell, row)) for row in block.rows], frozenset())
        case Table():
            yield from _table(block.columns, block.rows, block.numeric)
            yield from ("", escaped(block.caption)) if block.caption else ()
        case Points():
            yield from ("", *(f"- {escaped(each)}" for each in block.texts))
        case Code():
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block.text)), default=0))
            yield from ("", f"{fence}{block.language}", *block.text.splitlines(), fence)


def _table(
    columns: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...] | list[tuple[Cell, ...]], numeric: frozenset[int]
) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(map(escaped, columns))} |"
    yield f"|{'|'.join(' ---: ' if place in numeric else ' --- ' for place in range(len(columns)))}|"
    for row in rows:
        yield f"| {' | '.join(f'**{escaped(each.text)}**' if each.best else escaped(each.text) for each in row)} |"


def escaped(text: str) -> str:
    """A text that Markdown shows as it is: no markup, no HTML, no link, no line end."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split("\n"))).replace("://", "&#58;//")
