"""Reads the bytes of a script into a tree: YAML 1.2 scalars without tags, anchors, aliases or merge keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import yaml

from hfbench.scripts.errors import Code, Problems, Span
from hfbench.scripts.scalars import OutOfRange, plain_value
from hfbench.scripts.tree import Entry, Listing, Node, Plain, Scalar, Table
from hfbench.text import printable

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20


class _Mark(Protocol):
    index: int


def read_tree(source: bytes, problems: Problems) -> Node | None:
    """The tree of a script of at most MAX_BYTES bytes; None when there is nothing or it cannot be read."""
    text = _decoded(source, problems)
    if text is None:
        return None
    try:
        return _Builder(text, problems).document()
    except _TooDeep as error:
        problems.add(Code.TOO_DEEP, error.span, f"nested deeper than {MAX_DEPTH} levels")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        span = Span(mark.line + 1, mark.column + 1) if mark else Span(1, 1)
        begun = error.context_mark
        where = f" begun in line {begun.line + 1}" if begun and mark and begun.line < mark.line else ""
        told = ", ".join(filter(None, [error.context and f"{error.context}{where}", error.problem]))
        problems.add(Code.YAML_SYNTAX, span, f"this is not YAML: {told}")
    except yaml.YAMLError as error:
        problems.add(Code.YAML_SYNTAX, Span(1, 1), f"this is not YAML: {str(error).splitlines()[0]}")
    return None


def _decoded(source: bytes, problems: Problems) -> str | None:
    """The text with one kind of line end; None when it is not text or hides something."""
    try:
        text = source.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = source[: error.start].split(b"\n")
        span = Span(len(before), len(before[-1].decode("utf-8", "replace")) + 1)
        problems.add(Code.NOT_TEXT, span, f"byte 0x{source[error.start]:02x} is not UTF-8 text", "is this a script?")
        return None
    for number, line in enumerate(text.split("\n"), 1):
        shown = line.replace("\t", " ")
        if printable(shown) != shown:
            column, found = next((at, each) for at, each in enumerate(shown, 1) if printable(each) != each)
            hint = f'inside double quotes write "{printable(found)}"'
            problems.add(Code.BAD_CHARACTER, Span(number, column), f"the character {found!a} is not shown", hint)
            return None
    return text


class _TooDeep(Exception):
    def __init__(self, span: Span) -> None:
        self.span = span


class _Builder:
    """Turns parser events into nodes, so that depth is bounded before anything is built."""

    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self.problems = problems
        self.events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=yaml.SafeLoader))

    def document(self) -> Node | None:
        """The one document of the stream."""
        root: Node | None = None
        seen = False
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if seen:
                    self.problems.add(Code.SEVERAL_DOCUMENTS, _span(event), "a second document begins here")
                    return root
                seen = True
            elif isinstance(event, yaml.NodeEvent):
                root = self.node(event, 1)
        return root

    def node(self, event: yaml.Event, depth: int) -> Node:
        """The node that begins with `event`; the events of its inside are used up."""
        if depth > MAX_DEPTH:
            raise _TooDeep(_span(event))
        self._refuse_extras(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return Listing(_span(event), tuple(self.node(each, depth + 1) for each in self._inside()))
        if isinstance(event, yaml.MappingStartEvent):
            return self._table(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        return _broken(event)  # an alias, complained about already

    def _inside(self) -> Iterator[yaml.Event]:
        for event in self.events:
            if isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
                return
            yield event

    def _table(self, start: yaml.Event, depth: int) -> Table | Scalar:
        entries: dict[str, Entry] = {}
        sound = True
        for event in self._inside():
            key = self.node(event, depth + 1)
            value = self.node(next(self.events), depth + 1)
            if not isinstance(key, Scalar):
                braces = self.text.startswith("{{", _index(start.start_mark))
                hint = 'put "{{ name }}" in quotes' if braces else ""
                self.problems.add(Code.BAD_KEY, _span(start if braces else event), "a key must be text", hint)
                sound = False
            elif key.text == "<<" and key.raw == "<<":
                self.problems.add(Code.MERGE_KEY, key.span, "merge keys are not part of the format")
            elif first := entries.get(key.text):
                message = f"the key {key.text!r} is there twice, first in line {first.key.span.line}"
                self.problems.add(Code.DUPLICATE_KEY, key.span, message)
            else:
                entries[key.text] = Entry(key, value)
        return Table(_span(start), tuple(entries.values())) if sound else _broken(start)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        raw = self.text[_index(event.start_mark) : _index(event.end_mark)]
        value: Plain = event.value
        broken = False
        if not event.style:
            try:
                value = plain_value(event.value)
            except OutOfRange:
                broken = True
                self.problems.add(
                    Code.NUMBER_OUT_OF_RANGE, _span(event), "the number does not fit 64 bits", "quote it if it is text"
                )
        return Scalar(_span(event), value, event.value, raw, broken)

    def _refuse_extras(self, event: yaml.Event) -> None:
        span = _span(event)
        if isinstance(event, yaml.AliasEvent):
            message = f"the alias *{event.anchor} is not part of the format"
            self.problems.add(Code.ALIAS, span, message, "use a variable: {{ name }}")
            return
        if anchor := getattr(event, "anchor", None):
            message = f"the anchor &{anchor} is not part of the format"
            self.problems.add(Code.ANCHOR, span, message, "use a variable under vars")
        if tag := getattr(event, "tag", None):
            self.problems.add(
                Code.TAG, span, f"the tag {tag} is not part of the format", "quote the value if it is text"
            )


def _broken(event: yaml.Event) -> Scalar:
    return Scalar(_span(event), None, "", "", broken=True)


def _span(event: yaml.Event) -> Span:
    mark = event.start_mark
    assert mark is not None, "events of a stream have marks"
    return Span(mark.line + 1, mark.column + 1)


def _index(mark: _Mark | None) -> int:
    assert mark is not None, "events of a stream have marks"
    return mark.index
