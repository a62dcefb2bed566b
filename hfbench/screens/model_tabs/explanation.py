"""All about one line of a tab: instead of the list where there is little room, else beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.message import Message
from textual.widget import Widget

from hfbench.screens.model_tabs.base import ModelTab, Reading
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.help import Help

WIDE = 110
"""Columns from which an explanation stands beside its list."""

MOST_FACTS = 400
LONGEST = 2_000
"""Lines of one explanation, and characters of a value in it."""


class Explanation(Reading):
    """Label and value of everything that is known of one line."""

    help = Help(
        "Explanation",
        "`up`, `down`, `pgup` and `pgdn` scroll, `enter` or `escape` closes, `y` copies it.\n"
        "What a rule looks for and why stands in its page, too: hfbench rule ID.",
    )

    DEFAULT_CSS = "Explanation { display: none; height: 1fr; width: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "close", "close")]

    @dataclass
    class Closed(Message):
        """The user has read it."""

    def compose(self) -> ComposeResult:
        """The facts under their title."""
        yield FactsTable()

    def show(self, title: str, facts: Sequence[Fact]) -> None:
        """Show these facts from the first on; what nobody would read to its end is cut."""
        kept = [Fact(fact.label, _cut(fact.value), fact.state) for fact in facts[:MOST_FACTS]]
        more = [Fact("", f"and {len(facts) - MOST_FACTS:,} more; --json tells all", "muted")]
        self.query_one(FactsTable).show([*kept, *(more if len(facts) > MOST_FACTS else ())], title)

    @property
    def text(self) -> str:
        """What is shown, for the clipboard."""
        table = self.query_one(FactsTable)
        return "\n".join([table.title, *(f"{fact.label}: {fact.value}".removeprefix(": ") for fact in table.facts)])

    def action_close(self) -> None:
        """Tell the tab."""
        self.post_message(self.Closed())


class ExplainedTab(ModelTab):
    """A tab whose lines are explained on enter. Subclasses yield their list with the id `list`, then an Explanation."""

    filters: ClassVar[bool] = False

    DEFAULT_CSS = """
    ExplainedTab {
        layout: horizontal;
        & > #list { width: 1fr; height: 1fr; }
        &.-open > Explanation { display: block; }
        &.-open > #list { display: none; }
        &.-open.-wide > #list { display: block; margin-right: 3; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close_explanation", "close", show=False, id="model.close-detail"),
    ]

    _back: Widget | None = None
    """What had the keys before the explanation took them."""

    @property
    def explanation(self) -> Explanation:
        """The place for explanations."""
        return self.query_one(Explanation)

    @property
    def explains(self) -> bool:
        """True while an explanation is open."""
        return self.has_class("-open")

    def explain(self, title: str, facts: Sequence[Fact]) -> None:
        """Open an explanation; where it hides the list it takes the keys."""
        self.explanation.show(title, facts)
        self.explanation.scroll_home(animate=False)
        self.add_class("-open")
        self._place_keys()

    def close_explanation(self) -> None:
        """Back to the list."""
        self.remove_class("-open")
        self._place_keys()

    def take_focus(self) -> None:
        """To the list, or to the explanation that hides it."""
        target = self.explanation if self.explains and not self.has_class("-wide") else self.query_one(self.keys_to)
        self.screen.set_focus(target, scroll_visible=False)

    def copied(self) -> str:
        """The explanation that is read."""
        return self.explanation.text if self.explains and self.explanation.has_focus else ""

    def on_resize(self, event: Resize) -> None:
        """Beside each other where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")
        self._place_keys()

    def on_explanation_closed(self) -> None:
        """Read."""
        self.close_explanation()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`escape` is the screen's while nothing is open."""
        return action != "close_explanation" or self.explains

    def action_close_explanation(self) -> None:
        """Close it."""
        self.close_explanation()

    def _place_keys(self) -> None:
        """Give the keys to what is in view."""
        if not self.is_mounted:
            return
        focused, hidden = self.screen.focused, self.explains and not self.has_class("-wide")
        inside = focused is not None and self in focused.ancestors
        if hidden and inside and focused is not self.explanation:
            self._back = focused
            self.screen.set_focus(self.explanation, scroll_visible=False)
        elif not self.explains and focused is self.explanation:
            back = self._back if self._back is not None and self._back.is_attached else self.query_one(self.keys_to)
            self.screen.set_focus(back, scroll_visible=False)


def data_facts(data: Mapping[str, Any], label: str = "") -> Iterator[Fact]:
    """Plain data as facts: a line a value under its path, a line an item of a list; what is empty is left out."""
    pending: list[tuple[str, Any]] = [(f"{label}{key}", value) for key, value in reversed(list(data.items()))]
    left = MOST_FACTS + 1
    while pending and left:
        path, value = pending.pop()
        if isinstance(value, Mapping) and value:
            pending += [(f"{path}.{key}", item) for key, item in reversed(list(value.items()))]
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            pending += [(f"{path} {place}", item) for place, item in reversed(list(enumerate(value, 1)))]
        elif isinstance(value, list) and any(isinstance(item, str) for item in value):
            pending += [("" if place else path, item) for place, item in reversed(list(enumerate(value)))]
        elif value not in ("", [], {}):
            left -= 1
            yield Fact(path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text):,} characters)"
