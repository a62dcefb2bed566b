"""The models of one hub: searched, listed page by page as one scrolls, opened without their weights, pulled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from hfbench.errors import HfbenchError
from hfbench.hub.found import FoundModel
from hfbench.screens.confirm import AskText
from hfbench.screens.hub_asks import HubLists, HubOpening, Opened, OpeningLost, OpeningMoved, PageListed, PageLost
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.help import Help
from hfbench.widgets.hub_details import HubStatus
from hfbench.widgets.hub_rows import COLUMNS, ORDERS, HubPage, empty_line, found_record
from hfbench.widgets.hub_search_line import HubSearchLine
from hfbench.widgets.notice import Notice
from hfbench.widgets.progress_line import ProgressLine
from hfbench.widgets.progress_text import Phase
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.see_through import SeeThrough

if TYPE_CHECKING:
    from hfbench.app import Workbench
    from hfbench.hub.endpoints import Endpoint

NEAR = 5
"""Rows before the last one at which the next page is asked for."""


class HubTable(RecordTable):
    """Models of a hub, in the order the hub gave them."""

    help = Help(
        "Models of a hub",
        "`enter` opens a model without its weights: it can be checked, fitted and looked through at once. `p` pulls it "
        "whole, `v` opens another revision of it. `s` searches, `t` asks for tags, `o` walks through the hub's orders, "
        "`/` filters what is listed. The next page comes as you scroll, or with `n`.\n"
        "Gated models show what they are to everybody and their files to those who were let in; private ones are seen "
        "by people of their own.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "order", "order")]

    class Reorder(Message):
        """The next order of the hub is wanted."""

    def action_order(self) -> None:
        """A page in another order is another page: the hub is asked."""
        self.post_message(self.Reorder())


class HubPane(SeeThrough, Vertical):
    """Shows one endpoint at a time and remembers what the others listed. Posts `Changed`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pull", "pull", id="hub.pull"),
        Binding("v", "revision", "revision", id="hub.revision"),
        Binding("t", "tags", "tags", id="hub.tags"),
        Binding("n", "more", "more", id="hub.more"),
    ]

    DEFAULT_CSS = """
    HubPane {
        width: 1fr;
        & ProgressLine { display: none; }
    }
    """

    @dataclass
    class Changed(Message):
        """Another model is under the cursor, or another page is shown."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.pages: dict[str, HubPage] = {}
        self.endpoint = ""
        self.opening = ""
        """What is being opened, empty when nothing is."""
        self._tab = ""
        self._lists, self._opener = HubLists(self), HubOpening(self)

    @property
    def bench(self) -> Workbench:
        """The application, by its own type."""
        return cast("Workbench", self.app)

    @property
    def page(self) -> HubPage | None:
        """What is known of the endpoint in front."""
        return self.pages.get(self.endpoint)

    @property
    def table(self) -> HubTable:
        """The list."""
        return self.query_one(HubTable)

    @property
    def current(self) -> FoundModel | None:
        """The model under the cursor."""
        return self.page.find(self.table.current) if self.page else None

    @property
    def is_typing(self) -> bool:
        """True while words of a search are typed."""
        return self.is_mounted and self.query_one(HubSearchLine).is_open

    @property
    def busy(self) -> bool:
        """True while a hub is asked."""
        return bool(self.opening) or any(page.asking for page in self.pages.values())

    def compose(self) -> ComposeResult:
        """The search, how it stands, what went wrong, and the models."""
        yield HubSearchLine()
        yield HubStatus()
        yield FilterBar()
        yield Notice()
        yield HubTable(COLUMNS)
        yield ProgressLine()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._lists.close()
        self._opener.leave()

    def know(self, endpoints: tuple[Endpoint, ...]) -> None:
        """These endpoints there are; lists of an address that did not change are kept."""
        fresh = [HubPage(endpoint=each.name, url=each.url) for each in endpoints]
        known = self.pages
        self.pages = {
            page.endpoint: old if (old := known.get(page.endpoint)) and old.url == page.url else page for page in fresh
        }
        self._show()

    def show_endpoint(self, name: str) -> None:
        """Show what is known of this endpoint; nothing is asked."""
        if name != self.endpoint:
            self.stop()
            self.endpoint = name
            self._show()

    # -- asking ---------------------------------------------------------------

    def list_models(self) -> None:
        """Go to the list, and ask for it where nothing was asked yet."""
        self.screen.set_focus(self.table)
        if self.page and not self.page.asked:
            self.ask_anew()

    def search(self) -> None:
        """Let words be typed."""
        self.query_one(HubSearchLine).open()

    def ask_anew(self) -> None:
        """Ask for the first page of what is shown."""
        if self.page:
            self._ask(replace(self.page, models=(), cursor=""))

    def stop(self) -> None:
        """Nothing that was asked is wanted any more; a model that is being opened is not."""
        self._lists.stop()
        for name, page in self.pages.items():
            if page.asking:
                self.pages[name] = replace(page, asking=False, stopped=True)
        if self.opening:
            self._opener.give_up()
            self._end_opening()
        self._show()

    def _ask(self, page: HubPage) -> None:
        page = replace(page, asked=True, asking=True, stopped=False, error=None)
        self.pages[page.endpoint] = page
        self._lists.ask(page)
        self._show()

    @on(PageListed)
    def _listed(self, message: PageListed) -> None:
        asked, result = message.asked, message.result
        known = {each.id for each in asked.models}  # a hub that changes meanwhile tells some of them twice
        models = (*asked.models, *(each for each in result.models if each.id not in known))
        self.pages[asked.endpoint] = replace(asked, models=models, cursor=result.cursor, asking=False)
        self._show()

    @on(PageLost)
    def _lost(self, message: PageLost) -> None:
        if self.page:
            self.pages[self.endpoint] = replace(self.page, asking=False, error=message.error)
        self._show()

    @on(HubSearchLine.Submitted)
    def _searched(self, message: HubSearchLine.Submitted) -> None:
        if self.page:
            self.screen.set_focus(self.table)
            self._ask(replace(self.page, words=message.words, models=(), cursor=""))

    @on(HubTable.Reorder)
    def _reorder(self) -> None:
        if self.page:
            orders = list(ORDERS)
            sort = orders[(orders.index(self.page.sort) + 1) % len(orders)]
            self._ask(replace(self.page, sort=sort, models=(), cursor=""))

    @on(RecordTable.Highlighted)
    def _moved(self, message: RecordTable.Highlighted) -> None:
        message.stop()
        if self.table.cursor >= self.table.shown - NEAR and self.table.cursor > 0 and not self.table.filter:
            self._next_page()
        self.post_message(self.Changed())

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        message.stop()
        self.table.filter = message.text

    def _next_page(self) -> None:
        page = self.page
        if page and page.more and not (page.asking or page.stopped or page.error):
            self._ask(page)

    # -- painting -------------------------------------------------------------

    def _show(self) -> None:
        page = self.page
        if page is None or not self.is_attached:
            return
        self.query_one(HubSearchLine).show(page.words)
        self.query_one(HubStatus).show(page)
        self.table.empty = empty_line(page)
        self.table.show([found_record(each) for each in page.models])
        self._complain(page.error)
        self.refresh_bindings()
        self.post_message(self.Changed())

    def _complain(self, error: HfbenchError | None) -> None:
        notice = self.query_one(Notice)
        notice.show_error(error) if error else notice.clear()

    def _progress(self, phases: tuple[Phase, ...]) -> None:
        line = self.query_one(ProgressLine)
        line.display = bool(self.opening)
        line.show(phases or (Phase(f"opening {self.opening}", "running"),))

    # -- opening and pulling ----------------------------------------------------

    @on(RecordTable.Chosen)
    def _chosen(self, message: RecordTable.Chosen) -> None:
        message.stop()
        self.open_current()

    def open_current(self, tab: str = "") -> None:
        """Open the model under the cursor without its weights, at its overview unless another tab is named."""
        if model := self.current:
            self._open(model.reference, tab)

    def _open(self, reference: str, tab: str = "") -> None:
        if self.opening:
            self._opener.give_up()
        self.opening, self._tab = reference, tab
        self._complain(None)
        self._progress(())
        self._opener.start(self.bench, reference)
        self.post_message(self.Changed())

    def _end_opening(self) -> None:
        self.opening = ""
        self._progress(())

    @on(OpeningMoved)
    def _opening_moved(self, message: OpeningMoved) -> None:
        if self.opening:
            self._progress(message.phases)

    @on(Opened)
    def _opened(self, message: Opened) -> None:
        if self.opening:
            self._end_opening()
            if self.screen is self.app.screen:
                self.bench.open_model(message.reference, self._tab)
            else:  # whoever went on to something else is not called away from it
                self.notify(f"{message.reference} is open: enter on it shows it at once", markup=False)

    @on(OpeningLost)
    def _opening_lost(self, message: OpeningLost) -> None:
        self._end_opening()
        self._complain(message.error)

    def action_pull(self) -> None:
        """The form of `pull` for the model under the cursor."""
        if model := self.current:
            self.bench.open_form("pull", {"model": model.reference})

    @work
    async def action_revision(self) -> None:
        """Ask for a branch, a tag or a commit and open the model there."""
        if (model := self.current) is None:
            return
        asked = await self.app.push_screen_wait(AskText(f"which branch, tag or commit of {model.id}", "main"))
        if asked:
            self._open(f"{model.reference}@{asked}")

    @work
    async def action_tags(self) -> None:
        """Ask for tags that models must have."""
        if (page := self.page) is None:
            return
        question = "only models with these tags, such as text-generation gguf (none for all)"
        asked = await self.app.push_screen_wait(AskText(question, " ".join(page.tags)))
        if asked is not None:
            self._ask(replace(page, tags=tuple(asked.split()), models=(), cursor=""))

    def action_more(self) -> None:
        """The next page, also after one that did not come."""
        if self.page and self.page.more and not self.page.asking:
            self._ask(self.page)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what there is a model for, and more where there is more."""
        if action in ("pull", "revision"):
            return self.is_mounted and self.current is not None
        return action != "more" or bool(self.page and self.page.more)
