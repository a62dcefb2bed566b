"""The page of one repository of the cache: its revisions with their files, and what no revision uses."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer

from hfbench.screens.cache_asks import CacheListed, FileReader, FilesShown
from hfbench.screens.cache_keys import ORPHANS, CacheKeys
from hfbench.widgets.cache_revisions import COLUMNS, file_lines, revision_facts, revision_records
from hfbench.widgets.cache_rows import KnownCache, advice_facts, repo_advice
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import Glyphs, glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.list_and_detail import ListAndDetail
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.span_view import SpanView

if TYPE_CHECKING:
    from hfbench.hub.caching.facts import CachedRepo

REST = 0.2
"""Seconds the cursor stays on a revision before its files are listed."""

HELP = Help(
    "Repository of the cache",
    "A row a revision, then blobs that no revision names and downloads that were cut short. `own` is what freeing "
    "the revision frees: blobs that another revision uses stay. Below stand its files.\n"
    "`enter` opens the revision as a model. `d` frees it: it says how much, and asks. `O` frees all orphans of the "
    "cache, `v` hashes every blob in a job, `p` pulls the model again.\n"
    "`/` filters, `o` walks through the orders, `u` looks again, `y` copies the path, `tab` goes to the files.",
)


class RevisionTable(RecordTable):
    """Revisions, then what none of them uses."""

    help = HELP

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "order", "order", show=False)]


class CacheRepoScreen(CacheKeys):
    """One repository of the cache."""

    help = HELP

    filters = True

    def __init__(self, path: str, known: KnownCache) -> None:
        super().__init__(known)
        self.path = path
        self._repo_name = known.repos[path].repo
        self._reader = FileReader(self)
        self._files: dict[str, FilesShown] = {}
        self._records: list[Record] = []
        self._rest: Timer | None = None

    @property
    def repo(self) -> CachedRepo | None:
        """The repository; None once it was freed."""
        return self.known.repos.get(self.path) if self.known else None

    @property
    def at_rest(self) -> bool:
        """Looked at, and the files of the revision under the cursor listed."""
        return super().at_rest and (not self._folder or self._folder in self._files)

    def trail(self) -> tuple[str, ...]:
        """Which repository."""
        return ("Cache", self._repo_name)

    def body(self) -> ComposeResult:
        """Filter, trouble, revisions, files."""
        yield FilterBar()
        yield Notice()
        yield ListAndDetail(RevisionTable(COLUMNS, empty="no revision, and nothing left over"))

    def on_mount(self) -> None:
        """Show what the list knew."""
        self.set_focus(self.query_one(RevisionTable))
        self._paint()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._reader.stop()

    # -- what the cursor is on ------------------------------------------------

    @property
    def _key(self) -> str:
        return (self.query_one(RevisionTable).current if self.is_mounted else None) or ""

    @property
    def _revision(self) -> bool:
        return self.repo is not None and any(each.commit == self._key for each in self.repo.revisions)

    @property
    def _folder(self) -> str:
        """The snapshot under the cursor; empty on anything else."""
        return f"{self.path}/snapshots/{self._key}" if self._revision else ""

    @property
    def wish(self) -> tuple[Mapping[str, object], str] | None:
        """The revision under the cursor; of anything else all orphans."""
        if not self._key:
            return None
        return ({"model": f"{self._repo_name}@{self._key}"}, self.path) if self._revision else (ORPHANS, "")

    @property
    def place(self) -> str:
        """The snapshot's folder, or the file."""
        return self._folder or self._key

    @property
    def pulled(self) -> str:
        """The model itself."""
        return self._repo_name if self.repo is None or self.repo.kind == "model" else ""

    @property
    def chosen_model(self) -> str:
        """What the palette fills into an action's form: the revision by its name, as any client finds it here."""
        return f"{self._repo_name}@{self._key}" if self.pulled and self._revision else ""

    @property
    def chosen_folder(self) -> str:
        """The snapshot under the cursor."""
        return self._folder

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(RevisionTable).filter = message.text

    @on(RecordTable.Chosen)
    def _open(self) -> None:
        if self.chosen_model:
            self.bench.open_model(self.chosen_model)
        else:
            self.notify("only a revision of a model opens")

    @on(RecordTable.Highlighted)
    def _moved(self) -> None:
        if self.in_front:
            self._paint_one()
            self.query_one(ListAndDetail).to_top()
            self._follow()

    def _follow(self) -> None:
        """List the files of the revision under the cursor once it rests there."""
        if self._rest is not None:
            self._rest.stop()
        if self._folder and self._folder not in self._files:
            self._rest = self.set_timer(REST, partial(self._reader.show, self._folder))

    @on(FilesShown)
    def _files_shown(self, message: FilesShown) -> None:
        self._files[message.folder or self._folder] = message
        if self.here:
            self._paint_one()

    # -- painting -------------------------------------------------------------

    def known_changed(self, message: CacheListed | None = None) -> None:
        """Rows, or that the repository is no more."""
        if message is not None:
            notice = self.query_one(Notice)
            self._files.clear()
            if message.error is not None:
                notice.show_error(message.error)
            elif self.repo is None:
                notice.show("is no longer in the cache", where=self._repo_name, remedy="escape goes back to the list")
            else:
                notice.clear()
        self._paint()
        self._follow()

    def _paint(self) -> None:
        if not self.is_mounted or not self.in_front:
            return
        records = revision_records(self.repo, time.time(), glyphs_of(self.app)) if self.repo else []
        if records != self._records:
            self._records = records
            self.query_one(RevisionTable).show(records)
            self.query_one(ListAndDetail).share_room()
        self.refresh_frame()
        self._paint_one()

    def _paint_one(self) -> None:
        repo, key, glyphs = self.repo, self._key, glyphs_of(self.app)
        if repo is None or self.known is None:
            self.query_one(SpanView).show(lambda width: [])
            return
        facts = [*revision_facts(repo, key, time.time())]
        damaged = [each for each in self.known.damaged(repo) if any(name.startswith(key[:12]) for name in each.files)]
        if damaged and self._revision:
            facts[2:2] = [*advice_facts([each for each in repo_advice(repo, damaged) if each.short == "damaged"])]
        files = self._files.get(self._folder) if self._folder else None
        waits = bool(self._folder) and files is None
        self.query_one(SpanView).show(lambda width: _lines(facts, files, waits, width, glyphs))


def _lines(facts: list[Fact], files: FilesShown | None, waits: bool, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """What is known of the row, then its files."""
    lines = facts_lines(facts, width, glyphs)
    if waits:
        return [*lines, [], [("listing files ...", "muted")]]
    if files is None:
        return lines
    if files.shown is None:
        return [*lines, [], *facts_lines([Fact("files", str(files.error), "error")], width, glyphs)]
    return [*lines, [], [("files", "title")], *file_lines(files.shown.files, width, glyphs)]
