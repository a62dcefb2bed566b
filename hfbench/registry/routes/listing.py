"""Lists of repositories: searched, filtered, sorted, in pages."""

from __future__ import annotations

import logging
import re
from typing import Any

from sqlalchemy import ColumnElement, exists, false, func, or_, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.responses import JSONResponse, Response

from hfbench.registry import wire
from hfbench.registry.access.rules import visible
from hfbench.registry.call import Call
from hfbench.registry.database.history import find_commit, heads
from hfbench.registry.database.repos import Repo, list_repos, tags_of
from hfbench.registry.database.schema import namespaces, repo_tags, repos
from hfbench.registry.errors import BadRequest
from hfbench.registry.facts import facts_of
from hfbench.registry.paging import from_cursor, next_link, number_in, to_cursor
from hfbench.registry.routing import router
from hfbench.units import show_count

log = logging.getLogger("hfbench.registry")
A_PAGE, MOST = 100, 1000
MOST_CLAUSES = 100
"""Words and tags of one question: databases take no longer ones."""
SORTS = {
    "lastModified": "modified",
    "createdAt": "created",
    "downloads": "downloads",
    "likes": "id",  # nobody likes anything here: newest first, as good as any
    "trendingScore": "modified",
}
BILLIONS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
DETAILS = ("config", "cardData", "safetensors", "siblings")


@router.get("/api/models")
async def models(call: Call) -> Response:
    """Models the caller may see."""
    return await _listing(call, "model")


@router.get("/api/datasets")
async def datasets(call: Call) -> Response:
    """Datasets the caller may see."""
    return await _listing(call, "dataset")


async def _listing(call: Call, kind: str) -> Response:
    limit = number_in(call.query, "limit", A_PAGE, MOST)
    sort = SORTS.get(call.query.get("sort", "lastModified"), "modified")
    column, descending = repos.c[sort], call.query.get("direction", "-1") != "1"
    async with call.hub.database.reading() as connection:
        caller = await call.caller(connection)
        clauses = [repos.c.kind == kind, visible(caller), *_filters(call)]
        if cursor := call.query.get("cursor"):
            place = tuple_(*from_cursor(cursor, 2))
            here = tuple_(column, repos.c.id)
            clauses.append(here < place if descending else here > place)
        order = [column.desc(), repos.c.id.desc()] if descending else [column, repos.c.id]
        found = await list_repos(connection, clauses, order, limit + 1)
        page = found[:limit]
        tags = await tags_of(connection, [repo.id for repo in page])
        at = await heads(connection, [repo.id for repo in page])
        trees = await _trees(call, connection, page, at) if _details(call) else {}
    told = []
    for repo in page:
        row = wire.repo(repo, at.get(repo.id, ""), tags.get(repo.id, []))
        if tree := trees.get(repo.id):
            row |= await _more(call, repo, tree)
        told.append(row)
    headers = {}
    if len(found) > limit:
        headers = next_link(call, to_cursor([getattr(page[-1], sort), page[-1].id]))
    return JSONResponse(told, headers=headers)


def _filters(call: Call) -> list[ColumnElement[bool]]:
    query = call.request.query_params
    clauses: list[ColumnElement[bool]] = []
    for word in query.get("search", "").split():
        name = func.lower(namespaces.c.name + "/" + repos.c.name)
        clauses.append(name.contains(word.lower(), autoescape=True))
    if author := query.get("author"):
        clauses.append(namespaces.c.folded == author.casefold())
    for tag in (*query.getlist("filter"), *query.getlist("apps")):
        clauses += [_tagged(each) for each in tag.split(",") if each]
    if pipeline := query.get("pipeline_tag"):
        clauses.append(repos.c.pipeline_tag == pipeline)
    if library := query.get("library"):
        clauses.append(repos.c.library_name == library)
    if gated := query.get("gated"):
        clauses.append(repos.c.gated != "" if gated.lower() in ("true", "1") else repos.c.gated == "")
    if between := query.get("num_parameters"):
        clauses += _parameters(between)
    if len(clauses) > MOST_CLAUSES:
        raise BadRequest(f"There are too many words and tags: {len(clauses):,}, of {MOST_CLAUSES} at most.")
    return clauses


def _tagged(tag: str) -> ColumnElement[bool]:
    held = exists().where(repo_tags.c.repo_id == repos.c.id, repo_tags.c.tag == tag)
    return or_(held, repos.c.library_name == tag, false())


def _parameters(text: str) -> list[ColumnElement[bool]]:
    """`min:6B,max:128B`."""
    clauses = []
    for part in text.split(","):
        match = re.fullmatch(r"(min|max):(\d{1,6}(?:\.\d{1,6})?)([KMBT]?)", part.strip())
        if not match:
            raise BadRequest(f"num_parameters is of the form min:6B,max:{show_count(128e9)}.")
        number = int(float(match[2]) * BILLIONS[match[3]])
        clauses.append(repos.c.parameters >= number if match[1] == "min" else repos.c.parameters <= number)
    return clauses


def _details(call: Call) -> set[str]:
    asked = set(call.request.query_params.getlist("expand")) & set(DETAILS)
    asked |= {name for name in ("config", "cardData") if call.flag(name)}
    return asked | ({"siblings", "cardData"} if call.flag("full") else set())


async def _trees(
    call: Call, connection: AsyncConnection, page: list[Repo], at: dict[int, str]
) -> dict[int, tuple[str, list[Any]]]:
    """The tree of each repository's head, with its files where they were asked for."""
    trees: dict[int, tuple[str, list[Any]]] = {}
    for repo in page:
        commit = await find_commit(connection, repo.id, at.get(repo.id, ""))
        if commit is None:
            continue
        files = []
        try:
            if "siblings" in _details(call):
                walk = call.hub.trees.walk(connection, commit.tree)
                files = [{"rfilename": path} async for path, entry in walk if not entry.is_folder]
        except KeyError:  # a tree is gone: fsck tells of it, and the others are listed all the same
            log.error("a folder of %s is gone from the database", repo.full_name)
            continue
        trees[repo.id] = commit.tree, files
    return trees


async def _more(call: Call, repo: Repo, tree: tuple[str, list[Any]]) -> wire.Json:
    """What was asked for beyond the names; less of one whose files cannot be read, which must not hide the others."""
    id, files = tree
    asked, facts = _details(call), dict[str, Any]()
    try:
        facts = await facts_of(call.hub, id)
    except Exception:
        log.exception("the facts of %s could not be read", repo.full_name)
    told = {name: facts[name] for name in ("config", "cardData", "safetensors") if name in asked and name in facts}
    return told | ({"siblings": files} if "siblings" in asked else {})
