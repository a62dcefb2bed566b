"""The Models screen: what is on this machine, and what each of them is."""

from __future__ import annotations

from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from hfbench.jobs.state import State
from hfbench.screens.background import Background
from hfbench.screens.hub_asks import EndpointsKnown
from hfbench.screens.hub_pane import HubPane
from hfbench.screens.model_details import ModelDetails
from hfbench.screens.model_list import (
    HUB,
    RECENT,
    SOURCES,
    Listing,
    Source,
    empty_lines,
    record_of,
    source_records,
)
from hfbench.screens.model_loads import Resolved, Resolver
from hfbench.screens.model_look import Look
from hfbench.screens.models_keys import ModelsKeys
from hfbench.screens.models_reading import Listed, Looked, LookingFailed, forget_model, list_sources, look_at_all
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.help import Help
from hfbench.widgets.hub_details import HubDetails
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_table import RecordTable

COLUMNS = (
    Column("name", "Name", flexible=True, min=14, max=48, middle=True),
    Column("type", "Type", priority=1, flexible=True, min=6, max=14),
    Column("params", "Params", align="right", priority=2),
    Column("size", "Size", align="right"),
    Column("state", "State", min=9),
    Column("finding", "Finding", priority=3, flexible=True, min=16, max=60),
)
SOURCE_COLUMNS = (
    Column("source", "Sources", flexible=True, max=32, middle=True),
    Column("count", "", align="right", min=4),
)


MEASURING = ("bench.generate", "diff", "hub.open", "inspect", "gpus", "screenshot", "verify")
"""Actions that make no model: when one is over the disk is as it was."""


class ModelsScreen(ModelsKeys):
    """Models by where they come from; looked at one after the other while the list is used."""

    filters = True

    help = Help(
        "Models",
        "At the left where models come from, `tab` moves between there and the list. `enter` opens a model, "
        "`B` measures it, `=` compares it with another, `C` converts it to Megatron, `a` lists everything that can be "
        "done, `u` looks at the disk and the configuration again, `D` takes one off the recent models.\n"
        "Hubs stand among the sources; a hub is asked when `enter` is pressed on it or `s` searches it, not before.\n"
        "State is what the headers of the weights and the configuration tell: ok, ! for a warning, x for an error.",
    )

    DEFAULT_CSS = """
    ModelsScreen {
        & #lists { height: 1fr; }
        & #sources { width: 18; margin-right: 2; }
        & #found { width: 1fr; }
        & #hub, & HubDetails { display: none; }
        &.-hub #hub, &.-hub HubDetails { display: block; }
        &.-hub #found, &.-hub ModelDetails { display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.listings: dict[Source, Listing] = {}
        self.looks: dict[str, Look] = {}
        self.source: Source = "local"
        """The source on this machine that was chosen last."""
        self.no_endpoints = ""
        self.looking, self._scanned = True, False
        self._made: int | None = None
        self._listing, self._looking = Background(self, LookingFailed), Background(self, LookingFailed)
        self.resolver = Resolver(self)

    @property
    def models(self) -> RecordTable:
        """The list."""
        return self.query_one("#models", RecordTable)

    @property
    def current(self) -> Look | None:
        """The model of this machine under the cursor; None while a hub is in front."""
        if self.endpoint:
            return None
        key = self.models.current
        entries = self.listings[self.source].entries if self.source in self.listings else ()
        entry = next((each for each in entries if str(each.folder) == key), None)
        return None if entry is None else self.looks.get(str(entry.folder), Look(entry=entry))

    @property
    def chosen_model(self) -> str:
        """What the palette fills into an action's form."""
        if not self.is_mounted:
            return ""
        if self.endpoint:
            found = self.hub.current
            return found.reference if found else ""
        look = self.current
        return look.entry.reference if look else ""

    @property
    def chosen_folder(self) -> str:
        """Where the files of the model under the cursor are; empty for one that is on a hub."""
        look = self.current if self.is_mounted else None
        return str(look.entry.folder.absolute()) if look and look.entry.source != "remote" else ""

    @property
    def at_rest(self) -> bool:
        """Everything is listed, and what is shown was looked at; covered from the start, it has nothing to do."""
        covered = not self._scanned and not self.in_front
        waits = self.looking or (self.is_mounted and self.hub.busy) or (self.resolver.busy and self.in_front)
        return super().at_rest and (covered or (len(self.listings) == len(SOURCES) and not waits))

    def trail(self) -> tuple[str, ...]:
        """The outermost place."""
        return ("Models",)

    def body(self) -> ComposeResult:
        """Sources beside models, and below them the one under the cursor."""
        with Horizontal(id="lists"):
            yield RecordTable(SOURCE_COLUMNS, id="sources")
            with Vertical(id="found"):
                yield FilterBar()
                yield RecordTable(COLUMNS, id="models", empty="looking ...")
            yield HubPane(id="hub")
        yield Notice(id="trouble")
        yield Notice(id="empty")
        yield ModelDetails()
        yield HubDetails()

    def on_mount(self) -> None:
        """The sources are known, what they hold is not yet."""
        sources = self.query_one("#sources", RecordTable)
        sources.help = Help(
            "Sources", "Folders named in the configuration and the current one; the cache; hubs; recent."
        )
        self._show_sources()
        self.set_focus(self.models)

    def on_screen_resume(self) -> None:
        """Look when this screen was first seen: below a model that was asked for, it would only slow that down."""
        self.call_after_refresh(self._scan_once)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._listing.stop()
        self._looking.stop()
        self.resolver.forget()

    def machine_changed(self) -> None:
        """Jobs changed: the details may name another, and a job that is over may have made a model."""
        super().machine_changed()
        made = sum(job.action not in MEASURING and job.state is State.FINISHED for job in self.bench.machine.known_jobs)
        if self._made is not None and made != self._made and self._scanned:
            self.action_scan()
        self._made = made
        self._show_details()

    # -- reading --------------------------------------------------------------

    def _scan_once(self) -> None:
        if self.in_front and not self._scanned:
            self.action_scan()

    def action_scan(self) -> None:
        """List all sources anew; what was looked at is looked at again."""
        self._scanned, self.looking = True, True
        used = [job.model for job in self.bench.machine.known_jobs if job.model]
        self.looks = {}
        self.resolver.forget()
        self._listing.start(partial(list_sources, self.bench.config, used))

    def action_forget(self) -> None:
        """Take the model under the cursor off the recent ones; nothing else happens to it."""
        if self.source == RECENT and (look := self.current):
            used = [job.model for job in self.bench.machine.known_jobs if job.model]
            self.looking = True
            self._listing.start(partial(forget_model, look.entry, self.bench.config, used))

    def _look_at(self, source: Source) -> None:
        """Look at the models of a source one after the other; a source left is not looked at further."""
        listing = self.listings.get(source)
        waiting = [entry for entry in listing.entries if str(entry.folder) not in self.looks] if listing else []
        self.looking = bool(waiting) or listing is None
        if waiting:
            self._looking.start(partial(look_at_all, waiting))

    @on(Listed)
    def _listed(self, message: Listed) -> None:
        self.listings[message.source] = message.listing
        self._show_sources()
        if message.source == self.source:
            self._show_models()
            self._look_at(self.source)

    @on(EndpointsKnown)
    def _know(self, message: EndpointsKnown) -> None:
        self.no_endpoints = str(message.error or "")
        if not message.error:
            self.default_endpoint = message.default
            self.hub.know(message.endpoints)
        self._show_sources()

    @on(HubPane.Changed)
    def _hub_changed(self) -> None:
        self._show_sources()
        self.query_one(HubDetails).show(self.hub.current, self.hub.page)
        self.refresh_bindings()

    @on(Looked)
    def _looked(self, message: Looked) -> None:
        self.looks.update(message.looks)
        self.looking = not message.over
        self._show_models()

    @on(LookingFailed)
    def _failed(self, message: LookingFailed) -> None:
        self.looking = False
        self.listings = {source: Listing(()) for source in SOURCES} | self.listings
        self.query_one("#trouble", Notice).show_error(message.error)

    @on(Resolved)
    def _resolved(self, message: Resolved) -> None:
        self.resolver.take(message)
        self._show_details()

    # -- painting -------------------------------------------------------------

    def _show_sources(self) -> None:
        counts = {source: f"{len(listing.entries):,}" for source, listing in self.listings.items()}
        self.query_one("#sources", RecordTable).show(source_records(counts, self.hub.pages.values()))

    def _show_models(self) -> None:
        listing = self.listings.get(self.source, Listing(()))
        known = self.source in self.listings
        looks = [self.looks.get(str(entry.folder), Look(entry=entry)) for entry in listing.entries]
        self.models.empty = "no models" if known else "looking ..."
        self.models.show([record_of(look) for look in looks])
        trouble, empty = self.query_one("#trouble", Notice), self.query_one("#empty", Notice)
        told = "" if self.endpoint else listing.trouble or self.no_endpoints
        trouble.show(told, state="warn") if told else trouble.clear()
        if known and not listing.entries and not self.endpoint:
            found, remedy = empty_lines(self.source, self.bench.config.models)
            empty.show(found, remedy=remedy, state="muted")
        else:
            empty.clear()
        self._show_details()

    def _show_details(self) -> None:
        look = self.current
        entry = look.entry if look and look.entry.state == "ok" and not self.looking else None
        loads = self.resolver.follow(entry, self.bench.config.models)
        self.query_one(ModelDetails).show(look, self.bench.machine.known_jobs, loads)

    @on(RecordTable.Highlighted)
    def _highlighted(self, message: RecordTable.Highlighted) -> None:
        if message.table is self.models:
            self._show_details()
        elif message.key is not None:
            self.choose_source(message.key)

    def choose_source(self, key: str) -> None:
        """Bring a source to the front: a hub is shown as far as it is known, and not asked."""
        endpoint = key.removeprefix(HUB) if key.startswith(HUB) else ""
        if endpoint != self.endpoint:
            self.hub.stop()
            self.endpoint = endpoint
            self.set_class(bool(endpoint), "-hub")
            self._show_models()
        if endpoint:
            self.hub.show_endpoint(endpoint)
        elif key in SOURCES and key != self.source:
            self.source = key
            self._show_models()
            self._look_at(self.source)

    def bring(self, source: str) -> None:
        """Bring one of the sources to the front, if there is one of that name."""
        if self.query_one("#sources", RecordTable).move_to(source):
            self.choose_source(source)

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.models.filter = message.text

    @on(RecordTable.Chosen)
    def _chosen(self, message: RecordTable.Chosen) -> None:
        if message.table is not self.models:
            self.hub.list_models() if self.endpoint else self.set_focus(self.models)
        elif look := self.current:
            self.bench.open_model(look.entry.reference)
