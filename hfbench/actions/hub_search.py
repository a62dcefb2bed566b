"""hub.search: models on a hub, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.hub.found import FoundModel
from hfbench.line_width import cut, room
from hfbench.models.problem import counted
from hfbench.text import cells, clip_middle, printable
from hfbench.units import show_count

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

SORTS = ("", "downloads", "likes", "lastModified", "createdAt", "trendingScore")
NAME = 48
DATE = 10
"""Characters of a time that are its day."""
NUMBER = 7


@dataclass(frozen=True, kw_only=True)
class HubSearchResult:
    """The models of one page; `cursor` asks for the next one, empty on the last."""

    endpoint: str
    url: str
    models: tuple[FoundModel, ...]
    cursor: str

    @property
    def headline(self) -> str:
        """`20 models on hub, and more`."""
        more = ", and more" if self.cursor else ""
        return f"{counted(len(self.models), 'model')} on {self.endpoint}{more}"

    def lines(self) -> list[str]:
        """A row a model, as wide as the terminal, and how to go on."""
        rows = list(_rows(self.models)) if self.models else ["nothing matches"]
        tail = ["", f"more: --cursor {printable(self.cursor)}"] if self.cursor else []
        return [*rows, *tail]


@action("hub.search", result=HubSearchResult, inline=True, needs=("huggingface_hub",), extra="hub")
@dataclass(frozen=True, kw_only=True)
class HubSearch:
    """Search the models of a hub."""

    query: str = param("Words of the name; all models without", default="", positional=True)
    endpoint: str = param("Hub: a name of [endpoints] or an address; default HF_ENDPOINT, else the Hub", default="")
    author: str = param("Only of this user or organisation", default="")
    filter: tuple[str, ...] = param("Tags that a model must have, such as text-generation or gguf", default=())
    sort: str = param("Order, the most first", default="", choices=SORTS)
    limit: int = param("Models at most", default=20, ge=1, le=1000)
    cursor: str = param("Where the page before ended", default="")

    def __post_init__(self) -> None:
        from hfbench.hub.endpoints import refuse_passwords

        refuse_passwords(self.endpoint)

    def perform(self, run: Run) -> HubSearchResult:
        """Ask for one page, for a minute at most; HubError and its kinds."""
        from hfbench.hub.client import HubClient
        from hfbench.hub.search import search

        client = HubClient(self.endpoint, warn=lambda text: run.log(text, level="warning"))
        page = search(
            client,
            self.query,
            author=self.author,
            filters=self.filter,
            sort=self.sort,
            limit=self.limit,
            cursor=self.cursor,
        )
        at = client.endpoint
        return HubSearchResult(endpoint=at.name, url=at.url, models=page.models, cursor=page.cursor)


def _rows(models: tuple[FoundModel, ...]) -> Iterator[str]:
    """Name, parameters, downloads, likes, day, state and task in columns."""
    names = [clip_middle(printable(each.id), room(NAME), ellipsis="...") for each in models]
    width = max(map(cells, names))
    yield cut(f"{'model':<{width}}  {'params':>{NUMBER}} {'loads':>{NUMBER}} {'likes':>{NUMBER}}  {'changed':<{DATE}}")
    for name, each in zip(names, models, strict=True):
        numbers = (each.parameters, each.downloads, each.likes)
        told = " ".join(f"{'' if number is None else show_count(number):>{NUMBER}}" for number in numbers)
        state = ", ".join(filter(None, ["private" * each.private, "gated" if each.gated else "", printable(each.task)]))
        pad = " " * (width - cells(name))
        yield cut(f"{name}{pad}  {told}  {printable(each.modified[:DATE]):<{DATE}}  {state}").rstrip()
