"""The Cache screen: what lies in the Hugging Face cache, what is wrong with it, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize
from textual.widgets import Static

from hfbench.screens.cache_asks import CacheListed
from hfbench.screens.cache_keys import ORPHANS, CacheKeys
from hfbench.screens.cache_page import CacheRepoScreen
from hfbench.widgets.cache_rows import COLUMNS, detail_lines, records_of, summary, usual_snapshot, verified_words
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.see_through import SeeThrough
from hfbench.widgets.span_view import SpanView

WIDE = 110
"""Columns from which the row under the cursor is told beside the list."""

LOOKING = "looking at the Hugging Face cache ..."
NOTHING = "nothing in the cache yet: p pulls a model, 1 goes to the models"

HELP = Help(
    "Cache",
    "What lies in the Hugging Face cache (HF_HUB_CACHE), largest first: repositories, then what belongs to no "
    "revision. `shared` is what the revisions of a repository would take beyond its size, were nothing shared. "
    "`ok`; `!`: broken links, orphans, dead downloads, stale locks; `x`: a blob is not what its name says; `~`: a "
    "download the next pull goes on with, or a lock somebody holds. The text tells what to do.\n"
    "`enter` shows revisions and files. `d` frees the row: it says what and how much, and asks. `O` does so with all "
    "orphans. What a lock holds is never freed. `v` hashes every blob in a job. `p` pulls the model again.\n"
    "`/` filters, `o` walks through the orders, `u` looks again, `y` copies the path, `tab` goes to the text.",
)


class CacheTable(RecordTable):
    """Repositories by size, then locks and leftovers."""

    help = HELP

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "order", "order", show=False)]


class Rows(SeeThrough, Container):
    """The table, and below or beside it the row under its cursor."""


class CacheScreen(CacheKeys):
    """The whole cache, read by the `cache` action in a child process."""

    help = HELP

    filters = True

    DEFAULT_CSS = """
    CacheScreen {
        & #summary { height: 1; margin-bottom: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & Rows { height: 1fr; layout: vertical; }
        & CacheTable { height: 1fr; min-height: 5; }
        & SpanView { height: 40%; margin-top: 1; }
        &.-wide Rows { layout: horizontal; }
        &.-wide CacheTable { width: 62%; }
        &.-wide SpanView { height: 1fr; width: 1fr; margin: 0 0 0 3; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._records: list[Record] = []

    def trail(self) -> tuple[str, ...]:
        """The list itself."""
        return ("Cache",)

    def status(self) -> tuple[str, ...]:
        """When every blob was hashed, and what came of it."""
        told = verified_words(self.known, time.time()) if self.known else ""
        return (*super().status(), *filter(None, (told,)))

    def body(self) -> ComposeResult:
        """Filter, trouble, totals, the rows, one of them."""
        yield FilterBar()
        yield Notice()
        yield Static(id="summary", markup=False)
        with Rows():
            yield CacheTable(COLUMNS, empty=LOOKING)
            yield SpanView()

    def on_mount(self) -> None:
        """Keys go to the list."""
        self.set_focus(self.query_one(CacheTable))

    def on_resize(self, event: Resize) -> None:
        """Beside each other where there is room."""
        super().on_resize(event)
        self.set_class(event.size.width >= WIDE, "-wide")

    @property
    def wish(self) -> tuple[Mapping[str, object], str] | None:
        """The repository under the cursor; of a lock or the store, all orphans."""
        if self.known is None or not self.place:
            return None
        if repo := self.known.repos.get(self.place):
            return {"model": repo.repo}, repo.path
        return ORPHANS, ""

    @property
    def place(self) -> str:
        """The folder or file under the cursor."""
        key = self.query_one(CacheTable).current if self.is_mounted else None
        if self.known is None or key is None:
            return ""
        return f"{self.known.report.folder}/{key}" if key in self.known.report.strange else key

    @property
    def pulled(self) -> str:
        """The model under the cursor."""
        repo = self.known.repos.get(self.place) if self.known else None
        return repo.repo if repo and repo.kind == "model" else ""

    @property
    def chosen_model(self) -> str:
        """What the palette fills into an action's form."""
        return self.pulled

    @property
    def chosen_folder(self) -> str:
        """The snapshot that the model's name means; empty where there are several and none of them is meant."""
        repo = self.known.repos.get(self.place) if self.known and self.pulled else None
        return usual_snapshot(repo) if repo else ""

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(CacheTable).filter = message.text

    @on(RecordTable.Chosen)
    def _open(self, message: RecordTable.Chosen) -> None:
        if self.known is not None and message.key in self.known.repos:
            self.app.push_screen(CacheRepoScreen(message.key, self.known))
        else:
            self.notify("only repositories have revisions and files: tab goes to the text")

    @on(RecordTable.Highlighted)
    def _moved(self) -> None:
        if self.in_front:
            self._paint_one()
            self.query_one(SpanView).action_scroll_ends(-1)

    # -- painting -------------------------------------------------------------

    def known_changed(self, message: CacheListed | None = None) -> None:
        """Rows, totals, and the sentence where the cache cannot be read."""
        if message is not None:
            notice = self.query_one(Notice)
            if message.error is not None:
                notice.show(
                    message.error.found, where=message.error.where, remedy=message.error.remedy, state="unknown"
                )
            else:
                notice.clear()
        self._paint()

    def _paint(self) -> None:
        if not self.is_mounted or not self.in_front:
            return
        glyphs, table, now = glyphs_of(self.app), self.query_one(CacheTable), time.time()
        records = records_of(self.known, now, glyphs) if self.known else []
        if self.listed and table.empty != NOTHING:
            table.empty = NOTHING
            table.refresh()
        if records != self._records:
            self._records = records
            table.show(records)
        told = summary(self.known) if self.known else []
        self.query_one("#summary", Static).update(f" {glyphs.dot} ".join(told), layout=False)
        self.refresh_frame()
        self._paint_one()

    def _paint_one(self) -> None:
        key, known, glyphs, now = self.query_one(CacheTable).current, self.known, glyphs_of(self.app), time.time()
        self.query_one(SpanView).show(
            lambda width: detail_lines(known, key, now, width, glyphs) if key and known else []
        )
