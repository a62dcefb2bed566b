"""What a hub lists, in words: a page of its models, a model as a row, and the model under the cursor in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hfbench.errors import HfbenchError
from hfbench.hub.found import FoundModel
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_count
from hfbench.widgets.cells import Span, clip, clip_middle
from hfbench.widgets.glyphs import Glyphs
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

COLUMNS = (
    Column("name", "Name", flexible=True, min=16, max=56, middle=True),
    Column("task", "Task", priority=3, flexible=True, min=10, max=28),
    Column("params", "Params", align="right", priority=1),
    Column("downloads", "Loads", align="right", priority=2),
    Column("updated", "Changed", priority=4),
    Column("access", "Access", min=6),
)
ORDERS = {
    "": "in the hub's order",
    "downloads": "most downloads first",
    "likes": "most likes first",
    "lastModified": "latest change first",
    "createdAt": "newest first",
    "trendingScore": "trending first",
}
"""Orders a hub knows, in words."""

DAY = 10
"""Characters of a time that are its day."""
MOST = 3_000
"""Models listed of one search; whoever wants more has to narrow it."""


@dataclass(frozen=True, kw_only=True)
class HubPage:
    """What was asked of one endpoint and what came of it so far."""

    endpoint: str
    url: str
    words: str = ""
    """As they were typed; `author:NAME` among them is a user or an organisation."""
    tags: tuple[str, ...] = ()
    sort: str = ""
    models: tuple[FoundModel, ...] = ()
    cursor: str = ""
    asked: bool = False
    """False until something was sent to the hub."""
    asking: bool = False
    stopped: bool = False
    error: HfbenchError | None = None

    @property
    def more(self) -> bool:
        """Whether the hub has more of them, and there is room for more."""
        return bool(self.cursor) and len(self.models) < MOST

    @property
    def count(self) -> str:
        """For the list of sources: `30+`; empty while nothing is known."""
        known = self.asked and not (self.asking or self.stopped or self.error)
        return f"{len(self.models):,}{'+' if self.cursor else ''}" if known or self.models else ""

    def find(self, id: str | None) -> FoundModel | None:
        """The model of that name."""
        return next((each for each in self.models if each.id == id), None)

    def values(self) -> dict[str, object]:
        """The fields of `hub.search` for its next page, or its first."""
        words = self.words.split()
        authors = [each.removeprefix("author:") for each in words if each.startswith("author:")]
        asked: dict[str, object] = {"endpoint": self.endpoint, "sort": self.sort, "cursor": self.cursor}
        asked |= {"query": " ".join(each for each in words if not each.startswith("author:"))}
        asked |= {"author": authors[-1] if authors else "", "filter": list(self.tags)}
        return {name: value for name, value in asked.items() if value}


def found_record(model: FoundModel) -> Record:
    """A model of a hub as a row; what the hub did not tell is left blank."""
    return Record(
        model.id,
        {
            "name": model.id,
            "task": model.task or model.library,
            "params": _number(model.parameters),
            "downloads": _number(model.downloads),
            "updated": model.modified[:DAY],
            "access": access_of(model),
        },
        states={"access": "warn" if model.gated else "", "updated": "muted"},
    )


def access_of(model: FoundModel) -> str:
    """`private`, `gated`, both, or `public`."""
    return ", ".join(filter(None, ["private" if model.private else "", "gated" if model.gated else ""])) or "public"


def status_line(page: HubPage, glyphs: Glyphs) -> str:
    """How many, in which order, with which tags; before that, what to press."""
    if page.asking:
        return f"asking {page.endpoint} ({page.url}) ... esc stops"
    if page.stopped:
        return "stopped; u asks again"
    if not page.asked:
        return f"{page.url}: enter lists models, s searches"
    if page.error and not page.models:
        return page.url
    more = ", and more" if page.cursor else ""
    parts = [counted(len(page.models), "model") + more, ORDERS[page.sort]]
    parts += [f"tags {' '.join(page.tags)}"] if page.tags else []
    if page.cursor and not page.more:
        parts.append("narrow the search to see others")
    return printable(f" {glyphs.dot} ".join(parts))


def empty_line(page: HubPage) -> str:
    """What a table without rows says."""
    if page.asking:
        return "asking ..."
    if page.error or page.stopped:
        return "u asks again"
    if not page.asked:
        return "s searches, enter lists"
    return "nothing matches; s searches for something else"


def found_lines(model: FoundModel, page: HubPage, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """Name and kind, access and what to do, numbers, tags: four lines of at most `width` cells."""
    name = clip_middle(printable(model.id), max(8, width // 2), ellipsis=glyphs.ellipsis)
    parameters = f"{show_count(model.parameters)} parameters" if model.parameters is not None else ""
    kind = f" {glyphs.dot} ".join(filter(None, [model.task, model.library, parameters]))
    sign = f"{glyphs.warn}: " if model.gated else ""
    rest = max(0, width - len(sign))
    return [
        [(name, "title"), (clip(printable(f"   {kind}"), max(0, width - len(name)), ellipsis=glyphs.ellipsis), "")],
        [(sign, "warn"), (clip(printable(_access(model, page)), rest, ellipsis=glyphs.ellipsis), "")],
        [(clip(printable(f" {glyphs.dot} ".join(_numbers(model))), width, ellipsis=glyphs.ellipsis), "muted")],
        [(clip(printable(" ".join(model.tags)), width, ellipsis=glyphs.ellipsis), "muted")],
    ]


def _access(model: FoundModel, page: HubPage) -> str:
    if model.gated:
        how = "who asks is let in" if model.gated == "auto" else "its owner lets people in"
        return f"gated, {how}: ask at {page.url}/{model.id}"
    return f"{access_of(model)}: enter opens it without its weights, p pulls it whole"


def _numbers(model: FoundModel) -> Iterator[str]:
    for number, what in ((model.downloads, "download"), (model.likes, "like")):
        if number is not None:
            yield counted(number, what)
    for day, what in ((model.modified, "changed"), (model.created, "made")):
        if day:
            yield f"{what} {day[:DAY]}"


def _number(value: int | None) -> str:
    return "" if value is None else show_count(value)
