"""The chat templates, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult

from hfbench.models.diff.facts import KeyDiff
from hfbench.screens.diff_tabs.base import DiffTab
from hfbench.screens.diff_view import DiffView
from hfbench.text import printable
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import wrapped
from hfbench.widgets.help import Help
from hfbench.widgets.span_view import SpanView

STYLES = {"+": "ok", "-": "error", "@": "muted"}


class TemplateDiffTab(DiffTab):
    """What differs between chat templates, as a unified diff."""

    title: ClassVar[str] = "Template"
    section: ClassVar[str] = "template"
    keys_to = SpanView
    filters: ClassVar[bool] = False

    def compose(self) -> ComposeResult:
        """Text that scrolls."""
        text = SpanView()
        text.help = Help(
            "Chat template",
            "Lines of A begin with -, those of B with +. A template is the same wherever it stands: in the "
            "tokenizer's configuration or in a file of its own.",
        )
        yield text

    def show(self, view: DiffView) -> None:
        """Show the templates that differ."""
        found: Sequence[KeyDiff] = view.result.template if view.result else ()
        comparing = view.comparing

        def lines(width: int) -> list[list[Span]]:
            if not found:
                return [[("comparing ..." if comparing else "the chat templates are the same", "muted")]]
            return list(template_lines(found, width))

        self.query_one(SpanView).show(lines)


def template_lines(found: Sequence[KeyDiff], width: int) -> Iterator[list[Span]]:
    """Each template's name, and its lines in at most `width` cells."""
    for place, each in enumerate(found):
        if place:
            yield []
        where = "" if each.change == "changed" else f": {each.change} in B"
        yield [(printable(f"template {each.key}{where}"), "title")]
        for line in each.lines or _sides(each):
            style = STYLES.get(line[:1], "")
            for number, part in enumerate(wrapped(printable(line.expandtabs(4)), max(8, width - 2))):
                yield [("  " if number else "", ""), (part, style)]


def _sides(each: KeyDiff) -> Iterator[str]:
    """Both texts in full as they are told, where lines were not compared."""
    if each.a is not None:
        yield f"-{each.a}"
    if each.b is not None:
        yield f"+{each.b}"
