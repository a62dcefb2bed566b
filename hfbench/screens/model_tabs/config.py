"""The configuration key by key: what each means, what the runtime fills in, and the generation settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from hfbench.errors import HfbenchError
from hfbench.models.config import CONFIG, ModelConfig
from hfbench.models.explain.facts import GENERATION, Explained, ExplainedKey
from hfbench.models.explain.rows import json_text, leaves, spelled
from hfbench.models.problem import counted
from hfbench.screens.background import Background, Stopped
from hfbench.screens.messages import Latest
from hfbench.screens.model_tabs.whole import WholeTab
from hfbench.screens.model_view import SIGNS, ModelView
from hfbench.text import printable
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.glyphs import State, glyphs_of
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

MOST_ROWS = 1_500
"""Values shown of one file: more are laid out too slowly for the keys; `hfbench explain` tells more."""

LONGEST_CELL = 300
LARGE = 10_000
"""Integers from here on are also told with their thousands apart."""

LINE = "line "
"""Begins the keys of a file that is no JSON object, shown as its bare lines."""

SHOWN: tuple[tuple[str, str], ...] = (("", ""), ("only keys of files", "file"), ("only defaults", "default"))
"""What `v` walks through: every key, those in files, those filled in."""


@dataclass
class ConfigExplained(Latest):
    """The keys of the model in front."""

    explained: Explained


@dataclass
class ExplainingFailed(Message):
    """The thread that explains met an error of its own."""

    error: HfbenchError


class ConfigTab(WholeTab):
    """Each key under its full path, what it means, and what is filled in where a file is silent.

    Keys from "default" stand in no file: the class of the model type in transformers assumes them. A `!` before a
    value: the class makes something else of it. `v` shows only what is in files, or only defaults.
    """

    title: ClassVar[str] = "Config"
    columns = (
        Column("key", "Key", flexible=True, min=24, max=44, middle=True),
        Column("value", "Value", flexible=True, min=16, max=36),
        Column("from", "From", priority=1),
        Column("meaning", "Meaning", priority=2, flexible=True, min=32, max=160),
    )
    empty = "no configuration could be read; the overview says why"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("v", "shown", "view", id="model.config-view")]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._background = Background(self, ExplainingFailed)
        self._asked: object = None
        self._pending = False
        self._explained: Explained | None = None
        self._lines: dict[str, str] = {}
        self._keys: Mapping[str, ExplainedKey] = {}
        self._view: ModelView | None = None
        self._shown = 0

    @property
    def at_rest(self) -> bool:
        """False while keys are still being explained."""
        return not self._pending

    def above(self) -> ComposeResult:
        """How many keys come from where."""
        yield Static(id="counts", classes="above", markup=False)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._background.stop()

    def show(self, view: ModelView) -> None:
        """The configuration does not change while weights are read: it is explained once."""
        fresh = self._view is None or view.config is not self._asked
        over = self._view is not None and self._view.reading and not view.reading
        self._view = view
        if fresh:
            self._asked, self._explained = view.config, None
            self._explain(view)
        if fresh or over:
            super().show(view)

    def _explain(self, view: ModelView) -> None:
        location, config = view.location, view.config
        self._pending = location is not None and config is not None
        if location is None or config is None:
            self._background.stop()
            return

        def deed(stopped: Stopped, post: Callable[[Message], None]) -> None:
            from hfbench.models.explain.explain import explain

            post(ConfigExplained(explain(location, config, most=MOST_ROWS)))

        self._background.start(deed)

    @on(ConfigExplained)
    def _take(self, message: ConfigExplained) -> None:
        self._explained, self._pending = message.explained, False
        if self._view is not None:
            super().show(self._view)
        self._tell(message.explained)

    @on(ExplainingFailed)
    def _failed(self, message: ExplainingFailed) -> None:
        self._pending = False
        self.query_one(Notice).show_error(message.error)

    def _tell(self, explained: Explained) -> None:
        """The first problem of the files, and the line of counts."""
        notice = self.query_one(Notice)
        problems = [each for each in explained.problems if each.severity != "info"]
        if problems:
            first, more = problems[0], len(problems) - 1
            remedy = first.remedy + (f"; {counted(more, 'more problem')} in the overview" if more else "")
            notice.show(first.found, where=first.where, remedy=remedy.removeprefix("; "), state=SIGNS[first.severity])
        else:
            notice.clear()
        self._count()

    def _count(self) -> None:
        """How many keys come from where, and which of them are shown."""
        if self._explained is None:
            return
        dot = f" {glyphs_of(self.app).dot} "
        only = SHOWN[self._shown][0]
        self.query_one("#counts", Static).update(dot.join([*filter(None, [only]), *_counts(self._explained)]))

    def records(self, view: ModelView) -> Sequence[Record]:
        """A row a key, those of files first; the bare lines of a file that is no JSON object."""
        self._lines = {f"{LINE}{number}": line for number, line in enumerate(view.config_text, 1)}
        told = self._explained.keys if self._explained else _unexplained(view.config)
        origin = SHOWN[self._shown][1]
        kept = {_row_key(each): each for each in told if origin in ("", each.origin)}
        self._keys = kept
        lines = [Record(key, {"key": key, "value": text[:LONGEST_CELL]}) for key, text in self._lines.items()]
        return [*lines, *(_record(key, each) for key, each in kept.items())]

    def action_shown(self) -> None:
        """Every key, those in files, or those filled in."""
        self._shown = (self._shown + 1) % len(SHOWN)
        if self._view is not None:
            super().show(self._view)
        self._count()

    def hint(self) -> str:
        """What the key under the cursor means, and where a default comes from."""
        key = self._keys.get(self.current or "")
        if key is None:
            return ""
        parts = [f"! {_becomes(key)}" if key.becomes else "", key.by if key.origin == "default" else ""]
        return ". ".join(printable(part) for part in (*parts, key.meaning) if part)

    def facts(self) -> Sequence[Fact]:
        """Key, whole value, meaning, and where it comes from."""
        current = self.current or ""
        if current in self._lines:
            return [Fact("key", current), Fact("value", self._lines[current])]
        key = self._keys.get(current)
        return list(_facts(key)) if key else ()

    def copied(self) -> str:
        """The line as JSON writes it."""
        current = self.current or ""
        key = self._keys.get(current)
        return f"{json.dumps(key.key)}: {json_text(key.value)}" if key else self._lines.get(current, "")


def _unexplained(config: ModelConfig | None) -> Iterator[ExplainedKey]:
    """The keys of the file alone: they are there at once."""
    if config is not None:
        for path, value in islice(leaves(config.raw), MOST_ROWS):
            yield ExplainedKey(key=spelled(path), value=value, meaning="", origin="file", file=config.source or CONFIG)


def _row_key(key: ExplainedKey) -> str:
    return f"{key.file}\0{key.key}"


def _counts(explained: Explained) -> Iterator[str]:
    by_file: dict[str, int] = {}
    for each in explained.keys:
        if each.origin == "file":
            by_file[each.file] = by_file.get(each.file, 0) + 1
    yield from (f"{file} {counted(count, 'key')}" for file, count in by_file.items())
    if explained.config_class:
        filled = [each.file == GENERATION for each in explained.keys if each.origin == "default"]
        yield f"{counted(filled.count(False), 'default')} of {explained.config_class}, {explained.runtime}"
        if any(filled):
            yield f"{sum(filled)} of GenerationConfig"
    yield from explained.notes


def _record(row: str, key: ExplainedKey) -> Record:
    value = f"! {json_text(key.value)}" if key.becomes else _value(key)
    cells = {"key": key.key, "value": value[:LONGEST_CELL], "from": _origin(key), "meaning": key.meaning}
    states: dict[str, State] = {"meaning": "muted"}
    if key.origin == "default":
        states |= {"key": "muted", "value": "muted", "from": "muted"}
    if key.becomes:
        states["value"] = "warn"
    return Record(row, cells, states=states)


def _origin(key: ExplainedKey) -> str:
    if key.origin == "default":
        return "default" if key.file != GENERATION else "gen default"
    return {GENERATION: "generation"}.get(key.file, "file" if "quant" not in key.file else "quant file")


def _value(key: ExplainedKey) -> str:
    return json_text(key.value) if key.known else "worked out by the class"


def _becomes(key: ExplainedKey) -> str:
    return f"{key.by} makes it {key.becomes}" + (f": {key.how}" if key.how not in ("", key.becomes) else "")


def _facts(key: ExplainedKey) -> Iterator[Fact]:
    yield Fact("key", key.key)
    apart = f"  ({key.value:,})" if type(key.value) is int and abs(key.value) >= LARGE else ""
    yield Fact("value", _value(key) + apart)
    if key.becomes:
        yield Fact("becomes", _becomes(key), "warn")
    yield Fact("meaning", key.meaning or "not explained yet")
    if key.origin == "file":
        yield Fact("from", key.file, "muted")
    else:
        yield Fact("from", key.by + (f": {key.how}" if key.how else ""), "muted")
