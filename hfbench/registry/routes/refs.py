"""Branches, tags and the history of a repository."""

from __future__ import annotations

from sqlalchemy.exc import IntegrityError
from starlette.responses import JSONResponse, Response

from hfbench.registry import wire
from hfbench.registry.call import Call
from hfbench.registry.database.history import (
    BRANCH,
    MAIN,
    TAG,
    Kind,
    add_ref,
    find_revision,
    list_refs,
    log,
    remove_ref,
)
from hfbench.registry.errors import BadRequest, Conflict, RevisionNotFound
from hfbench.registry.names import check_ref
from hfbench.registry.paging import next_link, number_in
from hfbench.registry.routing import router

COMMITS_A_PAGE, MOST_COMMITS = 50, 1000


@router.get("/api/{kind}/{namespace}/{name}/refs")
async def refs(call: Call) -> Response:
    """All branches and tags."""
    async with call.hub.database.reading() as connection:
        repo = await call.repo(connection)
        return JSONResponse(wire.refs(await list_refs(connection, repo.id)))


@router.get("/api/{kind}/{namespace}/{name}/commits/{revision}")
async def commits(call: Call) -> Response:
    """The history of a revision, newest first, in pages."""
    limit = number_in(call.query, "limit", COMMITS_A_PAGE, MOST_COMMITS)
    async with call.hub.database.reading() as connection:
        repo = await call.repo(connection)
        start = await call.revision(connection, repo)
        if after := call.query.get("cursor"):
            page = (await log(connection, repo.id, after, limit + 2))[1:]
        else:
            page = await log(connection, repo.id, start.id, limit + 1)
    told = [wire.commit(each) for each in page[:limit]]
    headers = next_link(call, page[limit - 1].id) if len(page) > limit else {}
    return JSONResponse(told, headers=headers)


@router.post("/api/{kind}/{namespace}/{name}/branch/{branch}")
async def create_branch(call: Call) -> Response:
    """Make a branch at a revision, `main` unless another is named."""
    given = await call.json()
    return await _create(call, BRANCH, check_ref(call.params["branch"]), str(given.get("startingPoint") or MAIN))


@router.post("/api/{kind}/{namespace}/{name}/tag/{revision}")
async def create_tag(call: Call) -> Response:
    """Make a tag at a revision."""
    given = await call.json()
    name, message = check_ref(str(given.get("tag") or "")), str(given.get("message") or "")[:10_000]
    return await _create(call, TAG, name, call.params["revision"], message)


@router.delete("/api/{kind}/{namespace}/{name}/branch/{branch}")
async def delete_branch(call: Call) -> Response:
    """Remove a branch; `main` stays."""
    if call.params["branch"] == MAIN:
        raise BadRequest("main cannot be deleted: it is what the repository shows.")
    return await _delete(call, BRANCH, call.params["branch"])


@router.delete("/api/{kind}/{namespace}/{name}/tag/{tag}")
async def delete_tag(call: Call) -> Response:
    """Remove a tag."""
    return await _delete(call, TAG, call.params["tag"])


async def _create(call: Call, kind: Kind, name: str, at: str, message: str = "") -> Response:
    try:
        async with call.hub.database.writing() as connection:
            repo = await call.writable_repo(connection)
            commit = await find_revision(connection, repo.id, at)
            if commit is None:
                raise RevisionNotFound(at)
            await add_ref(connection, repo.id, kind, name, commit.id, message.replace("\0", ""))
    except IntegrityError as error:
        raise Conflict(f"Reference already exists: {kind} {name}") from error
    return JSONResponse({})


async def _delete(call: Call, kind: Kind, name: str) -> Response:
    async with call.hub.database.writing() as connection:
        repo = await call.writable_repo(connection)
        if not await remove_ref(connection, repo.id, kind, name):
            raise RevisionNotFound(name)
    return JSONResponse({})
