"""Asks for a model: from those on this machine, or by its path or name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from hfbench.errors import HfbenchError
from hfbench.screens.background import Background, Stopped
from hfbench.screens.model_list import SOURCES, list_source
from hfbench.units import show_bytes
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable

if TYPE_CHECKING:
    from hfbench.app import Workbench
    from hfbench.models.catalog import ModelEntry

COLUMNS = (
    Column("name", "Name", flexible=True, min=14, max=40, middle=True),
    Column("size", "Size", align="right"),
    Column("source", "Source", priority=2),
    Column("folder", "In", priority=1, flexible=True, min=16, max=200, middle=True),
)


@dataclass
class ModelsFound(Message):
    """The models of one source."""

    entries: tuple[ModelEntry, ...]


@dataclass
class FindingFailed(Message):
    """The thread that lists models met an error."""

    error: HfbenchError


class ModelInput(Input):
    """Filters the list below it; what is no model of the list is taken as a path or a name."""

    help = Help(
        "Choose a model",
        "Type a part of a name; `up` and `down` move in the list, `enter` takes the model there. A name that is typed "
        "whole comes first, then those that begin so.\n"
        "A path, or org/name from the cache, that is not in the list is taken as it is typed.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.move('move', -1)", "up", show=False),
        Binding("down", "screen.move('move', 1)", "down", show=False),
        Binding("pageup", "screen.move('page', -1)", "page up", show=False),
        Binding("pagedown", "screen.move('page', 1)", "page down", show=False),
    ]


class ChooseModel(ModalScreen[str]):
    """Gives a reference, or nothing when `escape` was pressed. `without` is not offered."""

    DEFAULT_CSS = """
    ChooseModel {
        align: center middle;
        & > Vertical { width: 90%; height: 80%; background: $panel; padding: 1 2; }
        &:nocolor > Vertical { border: solid $foreground; padding: 0 1; }
        & Label { width: 1fr; text-style: bold; }
        & Input { margin: 1 0; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("enter", "take", "take", priority=True),
    ]

    def __init__(self, question: str, *, without: str = "") -> None:
        super().__init__()
        self.question, self.without = question, without
        self.entries: dict[str, ModelEntry] = {}
        self._moved = False
        """Whether the cursor was moved since something was typed: then it stays where it is."""
        self._listing = Background(self, FindingFailed)

    @property
    def bench(self) -> Workbench:
        """The application, by its own type."""
        return cast("Workbench", self.app)

    @property
    def at_rest(self) -> bool:
        """Everything is listed."""
        return not self._listing.busy

    def compose(self) -> ComposeResult:
        """The question, what is typed, and the models it may mean."""
        with Vertical():
            yield Label(self.question, markup=False)
            yield ModelInput(compact=True, placeholder="part of a name, or a path")
            yield RecordTable(COLUMNS, empty="looking ...")
            yield Notice()

    def on_mount(self) -> None:
        """List the models beside the screen."""
        config, jobs = self.bench.config.models, self.bench.machine.known_jobs
        used = [job.model for job in jobs if job.model]

        def listing(stopped: Stopped, post: Callable[[Message], None]) -> None:
            for source in SOURCES:
                if not stopped():
                    post(ModelsFound(list_source(source, config, used).entries))
            post(ModelsFound(()))

        self.query_one(ModelInput).focus()
        self._listing.start(listing)

    def on_unmount(self) -> None:
        """Nobody asks any more."""
        self._listing.stop()

    @on(ModelsFound)
    def _found(self, message: ModelsFound) -> None:
        for entry in usable(message.entries, self.without):
            self.entries.setdefault(str(entry.folder), entry)
        table = self.query_one(RecordTable)
        table.empty = "no other model is listed; type the path of one"
        self._list()

    @on(FindingFailed)
    def _failed(self, message: FindingFailed) -> None:
        self.query_one(Notice).show_error(message.error)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.query_one(RecordTable).filter = event.value
        self._moved = False
        self._list()

    def _list(self) -> None:
        """The models, those first whose names are most like what is typed."""
        typed = self.query_one(ModelInput).value
        found = sorted(self.entries.items(), key=lambda item: likeness(item[1], typed))
        table = self.query_one(RecordTable)
        table.show([_record(key, entry) for key, entry in found])
        if not self._moved:
            table.cursor = 0  # it stays on its row, which may be far down by now

    def action_move(self, how: str, steps: int) -> None:
        """Move in the list while the keys go to the line above it."""
        self._moved = True
        table = self.query_one(RecordTable)
        table.action_move(steps) if how == "move" else table.action_page(steps)

    def action_take(self) -> None:
        """The model under the cursor; else what was typed."""
        typed, key = self.query_one(ModelInput).value.strip(), self.query_one(RecordTable).current
        if key is not None:
            self.dismiss(self.entries[key].reference)
        elif typed:
            self.dismiss(typed)

    def action_leave(self) -> None:
        """No model."""
        self.dismiss("")


def usable(entries: Iterable[ModelEntry], without: str) -> Iterable[ModelEntry]:
    """Those that can be opened, but for one."""
    return (
        each for each in entries if each.state != "x" and without not in (each.reference, str(each.folder.absolute()))
    )


def likeness(entry: ModelEntry, typed: str) -> int:
    """0 for a model of exactly that name, path or reference, 1 for the last part of its name, then names that begin
    so, and any other."""
    wanted = typed.strip().casefold()
    names = [each.casefold() for each in (entry.name, entry.reference, str(entry.folder))]
    last = names[0].rpartition("/")[2]
    if not wanted or wanted in names:
        return 0
    return 1 if wanted == last else 2 if names[0].startswith(wanted) else 3 if last.startswith(wanted) else 4


def place_of(entry: ModelEntry) -> str:
    """What tells models of one name apart, without the name: the folder a model lies in, or the commit cached."""
    if entry.source == "cache":
        return f"{entry.folder.name[:12]}  {_short(entry.folder.parent.parent.parent)}"
    whole, name = str(entry.folder), f"/{entry.name}"
    return _short(Path(whole.removesuffix(name) or "/") if whole.endswith(name) else entry.folder.parent)


def _short(folder: Path) -> str:
    """A path with ~ for the home folder."""
    home = Path(os.path.expanduser("~"))
    return f"~/{folder.relative_to(home)}" if folder != home and folder.is_relative_to(home) else str(folder)


def _record(key: str, entry: ModelEntry) -> Record:
    source = SOURCES["cache" if entry.source == "cache" else "local"]
    cells = {"name": entry.name, "size": show_bytes(entry.bytes), "source": source, "folder": place_of(entry)}
    return Record(key, cells, states={"folder": "muted", "source": "muted"}, order={"size": entry.bytes})


async def choose_and_compare(bench: Workbench, a: str) -> None:
    """Ask for what is missing of two models and show what sets them apart."""
    one = a or await bench.push_screen_wait(ChooseModel("compare which model"))
    if not one:
        return
    name = one.rstrip("/").rpartition("/")[2] or one
    other = await bench.push_screen_wait(ChooseModel(f"compare {name} with", without=one))
    if other:
        bench.open_diff(one, other)
