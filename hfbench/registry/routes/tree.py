"""What is in a revision: folders listed in pages, and paths looked up."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.responses import JSONResponse, Response

from hfbench.registry import wire
from hfbench.registry.call import Call
from hfbench.registry.database.history import Commit
from hfbench.registry.database.repos import Repo
from hfbench.registry.errors import BadRequest, EntryNotFound
from hfbench.registry.names import path_trouble
from hfbench.registry.paging import next_link, number_in
from hfbench.registry.revisions.entries import Entry
from hfbench.registry.revisions.last_change import last_changes
from hfbench.registry.routing import router
from hfbench.units import MIB

A_PAGE, A_PAGE_EXPANDED = 1000, 50
LARGEST_QUESTION, MOST_PATHS = 4 * MIB, 20_000


@router.get("/api/{kind}/{namespace}/{name}/tree/{revision}/{path...}")
async def tree(call: Call) -> Response:
    """The entries of a folder, or of all folders below it."""
    path, expand = call.params["path"].strip("/"), call.flag("expand")
    usual = A_PAGE_EXPANDED if expand else A_PAGE
    limit = number_in(call.query, "limit", usual, usual)
    async with call.hub.database.reading() as connection:
        repo = await call.repo(connection)
        commit = await call.revision(connection, repo)
        folder = None if path and path_trouble(path) else await call.hub.trees.find(connection, commit.tree, path)
        if folder is None or not folder.is_folder:
            raise EntryNotFound(path, commit.id)
        page: list[tuple[str, Entry]] = []
        walk = call.hub.trees.walk(
            connection,
            folder.target,
            below=path,
            recursive=call.flag("recursive"),
            after=call.query.get("cursor", ""),
        )
        async for each in walk:
            page.append(each)
            if len(page) > limit:
                break
        told = await _told(call, connection, repo, commit, dict(page[:limit]), expand=expand)
    headers = next_link(call, page[limit - 1][0]) if len(page) > limit else {}
    return JSONResponse(told, headers=headers | {"X-Repo-Commit": commit.id})


@router.post("/api/{kind}/{namespace}/{name}/paths-info/{revision}")
async def paths_info(call: Call) -> Response:
    """The entries at some paths; those that are not there are left out."""
    body = await call.body(LARGEST_QUESTION)
    try:
        given = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_PATHS)
    except ValueError as error:
        raise BadRequest(f"There are too many paths: {MOST_PATHS:,} at most.") from error
    async with call.hub.database.reading() as connection:
        repo = await call.repo(connection)
        commit = await call.revision(connection, repo)
        found: dict[str, Entry] = {}
        for path in (path.strip("/") for path in given.get("paths", ())):
            entry = None if path_trouble(path) else await call.hub.trees.find(connection, commit.tree, path)
            if entry is not None:
                found[path] = entry
        expand = given.get("expand", [""])[-1] in ("1", "true", "True")
        told = await _told(call, connection, repo, commit, found, expand=expand)
    return JSONResponse(told, headers={"X-Repo-Commit": commit.id})


async def _told(
    call: Call, connection: AsyncConnection, repo: Repo, commit: Commit, found: Mapping[str, Entry], *, expand: bool
) -> list[wire.Json]:
    told = {path: wire.entry(path, entry) for path, entry in found.items()}
    if expand:
        changes = await last_changes(connection, call.hub.trees, repo.id, commit, list(found))
        for path, change in changes.items():
            told[path]["lastCommit"] = wire.last_commit(change)
    return list(told.values())
