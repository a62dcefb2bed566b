"""A page of the documentation laid out for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markdown import Markdown

WIDEST = 100
"""Columns after which a line of prose is hard to read."""


def print_page(text: str) -> None:
    """Print a Markdown text on stdout, in as many columns as are there and can be read well."""
    console = Console()
    console.print(Markdown(text, hyperlinks=False), width=min(WIDEST, console.width))
