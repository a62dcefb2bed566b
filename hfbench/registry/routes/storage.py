"""What the repositories of a namespace take up."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from hfbench.registry import wire
from hfbench.registry.call import Call
from hfbench.registry.database.content import repo_bytes
from hfbench.registry.database.people import namespace_id
from hfbench.registry.database.repos import list_repos
from hfbench.registry.database.room import used_bytes
from hfbench.registry.database.schema import repos
from hfbench.registry.errors import Refusal
from hfbench.registry.paging import from_cursor, next_link, to_cursor
from hfbench.registry.routing import router

A_PAGE = 100


@router.get("/api/settings/repositories")
async def own(call: Call) -> Response:
    """The caller's own namespace."""
    return await _storage(call, "")


@router.get("/api/organizations/{organization}/settings/repositories")
async def of_organization(call: Call) -> Response:
    """A namespace in which the caller has a role."""
    return await _storage(call, call.params["organization"])


async def _storage(call: Call, name: str) -> Response:
    after = from_cursor(call.query["cursor"], 1)[0] if "cursor" in call.query else 0
    async with call.hub.database.reading() as connection:
        caller = await call.somebody(connection)
        namespace = await namespace_id(connection, name or caller.name)
        if namespace is None or not caller.role_in(namespace):
            raise Refusal(404, "There is no such namespace, or you have no role in it.")
        clauses = [repos.c.namespace_id == namespace, repos.c.id > after]
        found = await list_repos(connection, clauses, [repos.c.id], A_PAGE + 1)
        total = await used_bytes(connection, namespace)
        sizes = [await repo_bytes(connection, repo.id) for repo in found[:A_PAGE]]
    told = [wire.storage(repo, size, total) for repo, size in zip(found, sizes, strict=False)]
    headers = next_link(call, to_cursor([found[A_PAGE - 1].id])) if len(found) > A_PAGE else {}
    return JSONResponse(told, headers=headers)
