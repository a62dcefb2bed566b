"""What a widget says about itself when `?` is pressed."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import getdoc


@dataclass(frozen=True, slots=True)
class Help:
    """A title and a text; a line end in it ends a paragraph, and keys stand in backticks."""

    title: str
    text: str


def told_by(thing: object) -> str:
    """What a docstring tells, a paragraph a line: where its lines end in the source says nothing."""
    paragraphs = getdoc(thing) or ""
    return "\n".join(" ".join(each.split()) for each in paragraphs.split("\n\n"))
