"""Differences by key: of the configuration, the generation settings and the tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hfbench.models.diff.facts import KeyDiff
from hfbench.screens.diff_tabs.base import DiffTab
from hfbench.screens.diff_view import DiffView
from hfbench.screens.model_tabs.base import Detail
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import State
from hfbench.widgets.help import Help, told_by
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable

COLUMNS = (
    Column("change", "Change", min=7),
    Column("key", "Key", flexible=True, min=20, max=60, middle=True),
    Column("a", "A", flexible=True, min=10, max=200),
    Column("b", "B", flexible=True, min=10, max=200),
    Column("file", "File", priority=1, flexible=True, min=12, max=30),
)
STATES: dict[str, State] = {"added": "ok", "removed": "error", "changed": "warn"}


class KeysTab(DiffTab):
    """One section of the result, a line a key with nested keys written as paths."""

    keys_to = RecordTable

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close_detail", "close", show=False, id="diff.close-detail"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown: Sequence[KeyDiff] | None = None

    def compose(self) -> ComposeResult:
        """Filter, table, one key in full."""
        yield FilterBar()
        table = RecordTable(COLUMNS, empty="comparing ...")
        table.help = Help(self.title, f"{told_by(self)}\n{RecordTable.help.text}")
        yield table
        yield Detail()

    def show(self, view: DiffView) -> None:
        """Show the keys; the same ones again change nothing."""
        table = self.query_one(RecordTable)
        table.empty = "comparing ..." if view.comparing else "nothing differs here"
        found: Sequence[KeyDiff] = getattr(view.result, self.section) if view.result else ()
        if found != self._shown or not found:
            self._shown = found
            table.show([record_of(place, each) for place, each in enumerate(found)])
            self._follow()

    def copied(self) -> str:
        """The key under the cursor."""
        each = self._current
        return each.key or each.file if each else ""

    @property
    def _current(self) -> KeyDiff | None:
        key = self.query_one(RecordTable).current
        return self._shown[int(key)] if key is not None and self._shown else None

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(RecordTable).filter = message.text

    @on(RecordTable.Chosen)
    def _choose(self) -> None:
        detail = self.query_one(Detail)
        if detail.display:
            detail.display = False
        else:
            detail.open(self._facts())

    @on(RecordTable.Highlighted)
    def _follow(self) -> None:
        detail = self.query_one(Detail)
        if detail.display:
            detail.open(self._facts())

    def _facts(self) -> list[Fact]:
        each = self._current
        if each is None:
            return []
        facts = [Fact("file", each.file), Fact("key", each.key or "the whole file"), Fact("change", each.change)]
        return [*facts, Fact("A", value_text(each.a, each, "A")), Fact("B", value_text(each.b, each, "B"))]

    def action_close_detail(self) -> None:
        """Close the details."""
        self.query_one(Detail).display = False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`escape` is the screen's while no details are open."""
        return action != "close_detail" or (self.is_mounted and self.query_one(Detail).display)


class ConfigDiffTab(KeysTab):
    """Keys of config.json and its kin that differ."""

    title: ClassVar[str] = "Config"
    section: ClassVar[str] = "config"


class GenerationDiffTab(KeysTab):
    """Keys of generation_config.json that differ."""

    title: ClassVar[str] = "Generation"
    section: ClassVar[str] = "generation"


class TokenizerDiffTab(KeysTab):
    """Tokens, merges and settings of the tokenizer that differ; of very many the first are listed."""

    title: ClassVar[str] = "Tokenizer"
    section: ClassVar[str] = "tokenizer"


def record_of(place: int, each: KeyDiff) -> Record:
    """A key as a row; `place` is its number in the result."""
    return Record(
        str(place),
        {
            "change": each.change,
            "key": each.key or "(the whole file)",
            "a": value_text(each.a, each, "A"),
            "b": value_text(each.b, each, "B"),
            "file": each.file,
        },
        states={"change": STATES[each.change], "file": "muted"},
    )


def value_text(value: Any, each: KeyDiff, side: str) -> str:
    """A value as JSON writes it, texts told in words as they are; nothing at the side that lacks the key."""
    if (each.change == "added" and side == "A") or (each.change == "removed" and side == "B"):
        return ""
    if value is None and not each.key:
        return "there"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
