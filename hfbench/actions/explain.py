"""explain: what each key of a model's configuration means, and what the runtime fills in where it is silent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import cut, paragraph
from hfbench.models.explain.facts import Explained, ExplainedKey
from hfbench.models.explain.rows import MOST_ROWS, MOST_SEARCHED, json_text
from hfbench.models.problem import counted
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

NAME = 34
"""Cells of a key in a list; a longer one goes on a line of its own."""

WHOLE = 60
"""Lines of one value when a key was asked for."""


@dataclass(frozen=True, kw_only=True)
class ExplainResult(Explained):
    """The keys of a model's configuration files; `failed` when a file cannot be read as one."""

    asked: str = ""
    """The key that was asked for."""

    @property
    def failed(self) -> bool:
        """True when a configuration is broken."""
        return self.broken

    def lines(self) -> list[str]:
        """The keys for people, as wide as the terminal: those of the files first, defaults apart."""
        shown = [cut(printable(self.model))]
        for problem in self.problems:
            shown += paragraph(f"{'x' if problem.severity == 'error' else '!'} {problem}", most=4)
        for (file, by), keys in groupby(self.keys, key=_group):
            rows = list(keys)
            shown += ["", _heading(file, by, len(rows))]
            for each in rows:
                shown += _whole(each) if self.asked else _listed(each)
        for note in self.notes:
            shown += ["", *paragraph(f"~ {printable(note)}")]
        return shown


@action("explain", result=ExplainResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Explain:
    """Explain the keys of a model's configuration, and what the runtime fills in where it is silent."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    key: str | None = param(
        "One key, by path or last name, with * for anything; default all", default=None, positional=True
    )
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> ExplainResult:
        """Read the files; NoSuchKey when the key asked for is in none of them and has no default."""
        from hfbench.models.explain.explain import explain
        from hfbench.models.explain.select import matching
        from hfbench.models.reference import resolve

        most = MOST_ROWS if self.key is None else MOST_SEARCHED
        found = explain(resolve(self.model, cache_dir=self.cache_dir), most=most)
        if self.key is not None and not found.broken:
            found = replace(found, keys=matching(found.keys, self.key))
        told = {field.name: getattr(found, field.name) for field in fields(found)}
        return ExplainResult(asked=self.key or "", **told)


def _group(key: ExplainedKey) -> tuple[str, str]:
    """Keys of one file stand together, and so do the defaults of one class."""
    return key.file, key.by if key.origin == "default" else ""


def _heading(file: str, by: str, count: int) -> str:
    return cut(f"{by or file}, {counted(count, 'key')}")


def _listed(key: ExplainedKey) -> Iterator[str]:
    """A line of name and value, and one of what it means."""
    name = printable(key.key)
    if len(name) > NAME:
        yield f"  {cut(name, 2)}"
        name = ""
    value = cut(printable(_value(key)), NAME + 3)
    yield f"  {name:<{NAME}} {value}"
    if key.becomes:
        yield f"    ! {cut(printable(_becomes(key)), 6)}"
    if key.meaning:
        yield from paragraph(key.meaning, most=2, first="    ", later="    ")


def _whole(key: ExplainedKey) -> Iterator[str]:
    yield from paragraph(printable(key.key), most=WHOLE, first="  ", later="  ")
    facts: Sequence[tuple[str, str]] = (
        ("value", _value(key)),
        ("means", key.meaning or "not explained yet"),
        ("becomes", _becomes(key) if key.becomes else ""),
        ("by", key.how if key.origin == "default" and key.known else ""),
    )
    for label, text in facts:
        lines = paragraph(printable(text), 14, most=WHOLE)
        yield from (f"    {label if not number else '':<8}  {line}" for number, line in enumerate(lines))


def _value(key: ExplainedKey) -> str:
    return json_text(key.value) if key.known else "worked out by the class from other keys"


def _becomes(key: ExplainedKey) -> str:
    return f"{key.by} makes it {key.becomes}" + (f": {key.how}" if key.how and key.how != key.becomes else "")
