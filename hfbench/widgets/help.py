"""What a widget says about itself when `?` is pressed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Help:
    """A title and a few lines; keys stand in backticks."""

    title: str
    text: str
