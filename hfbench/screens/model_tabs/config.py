"""The configuration, a line a value, each under its full path so that a filter finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from hfbench.models.config import ModelConfig
from hfbench.screens.model_tabs.base import RecordTab
from hfbench.screens.model_view import ModelView
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

MOST_ROWS = 5_000
DEEPEST = 12
LONGEST_CELL = 300


class ConfigTab(RecordTab):
    """config.json with nested keys written as paths: `rope_scaling.factor`."""

    title: ClassVar[str] = "Config"
    columns = (
        Column("key", "Key", flexible=True, min=24, max=48, middle=True),
        Column("value", "Value", flexible=True, min=20, max=400),
    )
    empty = "no configuration could be read; the overview says why"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown: object = None
        self._values: dict[str, str] = {}

    def show(self, view: ModelView) -> None:
        """The configuration does not change while weights are read: it is laid out once."""
        if view.config is not self._shown or not view.reading:
            self._shown = view.config
            self._explain(view.config)
            super().show(view)

    def _explain(self, config: ModelConfig | None) -> None:
        notice = self.query_one(Notice)
        if config is not None and not config.raw and config.problems:
            problem = config.problems[0]
            notice.show(problem.found, where=problem.where, remedy=problem.remedy)
        else:
            notice.clear()

    def records(self, view: ModelView) -> Sequence[Record]:
        """A row a value; the bare lines of a file that is no JSON object."""
        raw = view.config.raw if view.config else {}
        told = [(f"line {number}", line) for number, line in enumerate(view.config_text, 1)]
        self._values = dict(told or flattened(raw))
        return [Record(key, {"key": key, "value": text[:LONGEST_CELL]}) for key, text in self._values.items()]

    def facts(self) -> Sequence[Fact]:
        """Key and whole value."""
        key = self.current
        return [Fact("key", key), Fact("value", self._values[key])] if key in self._values and key else ()

    def copied(self) -> str:
        """The line as JSON writes it."""
        key = self.current
        if key is None or key not in self._values:
            return ""
        return self._values[key] if key.startswith("line ") else f"{json.dumps(key)}: {self._values[key]}"


def flattened(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and JSON text of each value, at most MOST_ROWS; lists of plain values stay on one line."""
    pending: list[tuple[str, Any, int]] = [(key, value, 1) for key, value in reversed(raw.items())]
    left = MOST_ROWS
    while pending:
        if left == 0:
            yield "...", f"more than {MOST_ROWS:,} values; the rest is not shown"
            return
        path, value, depth = pending.pop()
        inner = _inner(value) if depth < DEEPEST else []
        if inner:
            pending += [(f"{path}.{key}", item, depth + 1) for key, item in reversed(inner)]
        else:
            left -= 1
            yield path, json.dumps(value, ensure_ascii=False)


def _inner(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [(str(index), item) for index, item in enumerate(value)]
    return []
