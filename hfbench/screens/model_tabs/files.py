"""The files of the model's folder as they lie on disk, and whether their hashes are what they should be."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from hfbench.errors import HfbenchError
from hfbench.models.inventory.facts import FileEntry, Inventory, Reading, entry_of
from hfbench.models.problem import counted
from hfbench.screens.background import Background, Stopped
from hfbench.screens.messages import Latest
from hfbench.screens.model_tabs.files_text import fault_of, file_facts, layout_facts, record_of
from hfbench.screens.model_tabs.whole import WholeTab
from hfbench.screens.model_view import ModelView
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.notice import Notice
from hfbench.widgets.progress_line import ProgressLine
from hfbench.widgets.progress_text import Phase
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

PACE = 0.2
"""Seconds between two pictures of the progress: more often is not read, and over SSH each one costs."""


@dataclass
class Inventoried(Latest):
    """The files as they lie on disk."""

    inventory: Inventory


@dataclass
class Hashing(Latest):
    """How far the hashing is, and the seconds it has taken."""

    reading: Reading
    seconds: float


@dataclass
class Hashed(Message):
    """Files that were hashed; `done` with the last ones."""

    files: tuple[FileEntry, ...]
    done: bool


@dataclass
class FilesFailed(Message):
    """A thread met an error of its own."""

    error: HfbenchError


class FilesTab(WholeTab):
    """Every file with its size and what a link leads to; nothing but a plain file is ever opened.

    `h` hashes the file under the cursor, `H` every file, `c` stops. Where a blob's name, a git-lfs pointer or a
    download's metadata tells the hash, it is compared. Hashes are remembered until a file changes.
    """

    title: ClassVar[str] = "Files"
    columns = (
        Column("name", "Name", flexible=True, min=20, max=60, middle=True),
        Column("kind", "Kind", priority=1),
        Column("size", "Size", align="right"),
        Column("hash", "Hash"),
        Column("note", "Note", priority=2, flexible=True, min=24, max=80, middle=True),
    )
    empty = "the folder holds no files"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h", "hash", "hash", id="model.hash"),
        Binding("H", "hash_all", "hash all", id="model.hash-all"),
        Binding("c", "stop_hashing", "stop hashing", id="model.hash-stop"),
    ]

    DEFAULT_CSS = "FilesTab ProgressLine { display: none; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._listing, self._hashing = Background(self, FilesFailed), Background(self, FilesFailed)
        self._pending, self._under_way = False, False
        self._asked: object = None
        self._view: ModelView | None = None
        self._inventory: Inventory | None = None
        self._files: dict[str, FileEntry] = {}

    @property
    def at_rest(self) -> bool:
        """False while files are listed or hashed."""
        return not self._pending and not self._under_way

    def above(self) -> ComposeResult:
        """Sizes, and how the repository lies in a cache."""
        yield FactsTable(id="layout")

    def below(self) -> ComposeResult:
        """How far the hashing is."""
        yield ProgressLine()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._listing.stop()
        self._hashing.stop()

    def show(self, view: ModelView) -> None:
        """The listing does not change while weights are read: it is laid out once."""
        fresh = self._view is None or view.files is not self._asked
        over = self._view is not None and self._view.reading and not view.reading
        self._view = view
        if fresh:
            self._asked, self._inventory = view.files, None
            self._files = {each.name: entry_of(each) for each in view.files or ()}
            self._stop()
            self._look(view)
        if fresh or over:
            super().show(view)

    def _look(self, view: ModelView) -> None:
        location, files = view.location, view.files
        self._pending = location is not None and files is not None
        if location is None or files is None:
            self._listing.stop()
            return

        def deed(stopped: Stopped, post: Callable[[Message], None]) -> None:
            from hfbench.models.inventory.inventory import take_inventory

            post(Inventoried(take_inventory(location, files)))

        self._listing.start(deed)

    @on(Inventoried)
    def _take(self, message: Inventoried) -> None:
        self._inventory, self._pending = message.inventory, False
        self._files = {each.name: each for each in message.inventory.files}
        self.query_one("#layout", FactsTable).show(list(layout_facts(message.inventory, glyphs_of(self.app).dot)))
        self._repaint()

    @on(FilesFailed)
    def _failed(self, message: FilesFailed) -> None:
        self._pending = False
        self._end_progress()
        self.query_one(Notice).show_error(message.error)

    def records(self, view: ModelView) -> Sequence[Record]:
        """A row a file."""
        return [record_of(each) for each in self._files.values()]

    def _repaint(self) -> None:
        if self._view is not None:
            super().show(self._view)

    # -- hashing --------------------------------------------------------------

    def action_hash(self) -> None:
        """Hash the file under the cursor."""
        file = self._files.get(self.current or "")
        if file is not None and file.problem:
            self.notify(f"{file.name} cannot be hashed: {file.problem}", markup=False)
        elif file is not None and file.held != "whole":
            self.notify(f"{file.name} cannot be hashed: not all of it is here, p pulls it", markup=False)
        elif file is not None:
            self._hash([file])

    def action_hash_all(self) -> None:
        """Hash every file that is here, those not yet hashed first."""
        here = [each for each in self._files.values() if each.held == "whole"]
        self._hash(sorted(here, key=lambda each: bool(each.verdict)))

    def action_stop_hashing(self) -> None:
        """Stop; what is done stays."""
        self._stop()
        self.notify("hashing stopped; files that were done keep their hashes", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is something to stop only while hashing."""
        if action == "stop_hashing":
            return self._under_way
        return super().check_action(action, parameters)

    def _stop(self) -> None:
        self._hashing.stop()
        self._end_progress()

    def _end_progress(self) -> None:
        self._under_way = False
        self.query_one(ProgressLine).display = False
        self.refresh_bindings()

    def _hash(self, files: Sequence[FileEntry]) -> None:
        if self._inventory is None or not files:
            return
        folder = Path(self._inventory.folder)
        self._under_way = True
        self._hashing.start(lambda stopped, post: hash_and_post(files, folder, stopped, post))
        self.refresh_bindings()

    @on(Hashing)
    def _progress(self, message: Hashing) -> None:
        if not self._under_way:
            return  # overtaken by the last ones
        reading, seconds = message.reading, message.seconds
        share = reading.done / reading.total if reading.total else None
        left = seconds * (1 / share - 1) if share else None
        line = self.query_one(ProgressLine)
        line.show([Phase(f"sha256 of {reading.name}", "running", fraction=share, remaining=left)])
        line.display = True

    @on(Hashed)
    def _done(self, message: Hashed) -> None:
        self._files |= {each.name: each for each in message.files if each.name in self._files}
        if message.done:
            self._end_progress()
        self._tell()
        self._repaint()

    def _tell(self) -> None:
        """A file that is not what it should be is named until it is hashed again and found right."""
        wrong = [each for each in self._files.values() if each.verdict in ("differs", "unreadable")]
        notice = self.query_one(Notice)
        if not wrong:
            notice.clear()
            return
        first, more = wrong[0], len(wrong) - 1
        others = f"; {counted(more, 'more file')} {'is' if more == 1 else 'are'} wrong" if more else ""
        what = "its hash is not what it should be" if first.verdict == "differs" else first.note
        notice.show(what, where=first.name, remedy=f"fetch it again; enter tells the hashes{others}")

    # -- one file -------------------------------------------------------------

    def hint(self) -> str:
        """What is wrong with the file under the cursor, for which the table has too little room."""
        file = self._files.get(self.current or "")
        return fault_of(file) if file else ""

    def facts(self) -> Sequence[Fact]:
        """Path, exact size, where links lead, and hashes."""
        file = self._files.get(self.current or "")
        return list(file_facts(file)) if file else ()

    def copied(self) -> str:
        """The path."""
        file = self._files.get(self.current or "")
        return file.path if file else ""


def hash_and_post(files: Sequence[FileEntry], folder: Path, stopped: Stopped, post: Callable[[Message], None]) -> None:
    """Hash files one by one, and tell at a pace that can be read how far that is and what is done."""
    from hfbench.models.inventory.digest import Stopped as HashingStopped
    from hfbench.models.inventory.digest_cache import DigestCache
    from hfbench.models.inventory.inventory import hashed

    begun = told = time.monotonic()
    done: list[FileEntry] = []

    def tell(reading: Reading) -> None:
        nonlocal told
        if (now := time.monotonic()) - told >= PACE:
            told = now
            post(Hashing(reading, now - begun))
            hand_over(last=False)

    def hand_over(*, last: bool) -> None:
        if done or last:
            post(Hashed(tuple(done), done=last))
            done.clear()

    with DigestCache() as cache, suppress(HashingStopped):
        for each in hashed(files, folder, cache=cache, tell=tell, stopped=stopped):
            done += [each]
        hand_over(last=True)
