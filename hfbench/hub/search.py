"""Finds models on a hub: words, filters, an order, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from hfbench.hub.client import Answer, HubClient
from hfbench.hub.found import FoundModel, Page
from hfbench.hub.refusals import HubError, NotAHub, not_a_hub
from hfbench.models.reference import REPO

PATH = "/api/models"
SHOWN = (
    "author",
    "createdAt",
    "downloads",
    "gated",
    "lastModified",
    "library_name",
    "likes",
    "pipeline_tag",
    "private",
)
MORE = ("safetensors", "tags")
"""What is asked for of each model; a hub that knows no `expand` leaves some of it out."""
MOST_TAGS = 200
CURSOR, QUERY = "cursor", "?"
"""A cursor is what the hub says, or where it pages in another way, all of the next page's query after a `?`."""


def search(
    client: HubClient,
    query: str = "",
    *,
    author: str = "",
    filters: tuple[str, ...] = (),
    sort: str = "",
    limit: int = 20,
    cursor: str = "",
) -> Page:
    """One page of models. HubError and its kinds; NotAHub for an answer that is no list of models."""
    asked: dict[str, Any] = {"limit": limit}
    given = {"search": query, "author": author, "filter": list(filters), "sort": sort}
    asked |= {name: value for name, value in given.items() if value}
    if cursor.startswith(QUERY):
        asked = dict[str, Any]()
        for name, value in parse_qsl(cursor[len(QUERY) :]):
            asked.setdefault(name, []).append(value)
    elif cursor:
        asked[CURSOR] = cursor
    answer = _asked(client, asked)
    if not isinstance(answer.data, list):
        raise not_a_hub("where a list of models belongs it sends something else", client.asked())
    models = tuple(model for each in answer.data[:limit] if (model := _read(each, client)) is not None)
    if answer.data and not models:
        raise not_a_hub("what it lists are no models", client.asked())
    return Page(models=models, cursor=_cursor(answer))


def _asked(client: HubClient, asked: Mapping[str, Any]) -> Answer:
    """The list with all that is shown; a hub that refuses the question for `expand` is asked without."""
    try:
        return client.get(PATH, client.asked(), {**asked, "expand": [*SHOWN, *MORE]})
    except HubError as error:
        if type(error) not in (NotAHub, HubError):
            raise
    return client.get(PATH, client.asked(), asked)


def _cursor(answer: Answer) -> str:
    if not answer.next:
        return ""
    query = urlsplit(answer.next).query
    found = dict(parse_qsl(query)).get(CURSOR)
    return found or QUERY + query


def _read(data: Any, client: HubClient) -> FoundModel | None:
    """A model of the list, None for what has no name."""
    name = data.get("id") or data.get("modelId") if isinstance(data, dict) else None
    if not isinstance(name, str) or not REPO.fullmatch(name):
        return None
    gated, weights, tags = data.get("gated"), data.get("safetensors"), data.get("tags")
    return FoundModel(
        id=name,
        reference=client.endpoint.reference(name),
        private=data.get("private") is True,
        gated=gated if gated in ("auto", "manual") else "manual" if gated is True else "",
        downloads=_count(data.get("downloads")),
        likes=_count(data.get("likes")),
        parameters=_count(weights.get("total")) if isinstance(weights, dict) else None,
        modified=_text(data.get("lastModified")),
        created=_text(data.get("createdAt")),
        task=_text(data.get("pipeline_tag")),
        library=_text(data.get("library_name")),
        tags=tuple(tag for tag in tags[:MOST_TAGS] if isinstance(tag, str)) if isinstance(tags, list) else (),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""
