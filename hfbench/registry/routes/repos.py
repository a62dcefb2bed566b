"""Repositories made, removed, moved and set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.responses import JSONResponse, Response

from hfbench.registry.access.caller import Caller
from hfbench.registry.access.rules import may_see
from hfbench.registry.call import Call
from hfbench.registry.database.audit import note
from hfbench.registry.database.history import BRANCH, MAIN, add_commit, add_ref
from hfbench.registry.database.people import add_namespace, namespace_id, set_role
from hfbench.registry.database.repos import add_repo, change_repo, find_moved, find_repo, keep_name, remove_repo
from hfbench.registry.errors import BadRequest, Conflict, Forbidden, NotImplementedHere, RepoNotFound
from hfbench.registry.names import check_name
from hfbench.registry.quotas import require_kept_within
from hfbench.registry.revisions.commit import first_commit
from hfbench.registry.revisions.entries import EMPTY
from hfbench.registry.routing import router

KINDS = ("model", "dataset")
GATES = (False, "auto", "manual")
PREFIXES = {"model": "", "dataset": "datasets/"}


@router.post("/api/repos/create")
async def create(call: Call) -> Response:
    """Make a repository with an empty first commit; 409 with its URL when it is there."""
    given = await call.json()
    kind = _kind(given)
    async with call.hub.database.reading() as connection:
        caller = await call.somebody(connection)
    namespace, name = _full_name(given, caller)
    check_name(namespace, "namespace")
    check_name(name, "repository")
    private = given.get("visibility") == "private" or given.get("private") is True
    try:
        async with call.hub.database.writing() as connection:
            owner = await _namespace(connection, namespace, caller)
            if await find_repo(connection, kind, namespace, name):
                raise Conflict(f"You already created this {kind} repo: {namespace}/{name}")
            moved = await find_moved(connection, kind, namespace, name)
            if moved is not None and may_see(caller, moved):
                namespace, name = moved.namespace, moved.name
                raise Conflict(f"This {kind} repo was moved to {moved.full_name}")
            repo = await add_repo(connection, kind, owner, name, private=private)
            first = first_commit(repo, caller.name)
            await call.hub.trees.save(connection, [EMPTY])
            await add_commit(connection, repo, first)
            await add_ref(connection, repo, BRANCH, MAIN, first.id)
            await note(connection, caller.name, "repo.create", f"{kind} {namespace}/{name}")
    except (Conflict, IntegrityError):  # the second of two at once meets the constraint
        error = f"You already created this {kind} repo: {namespace}/{name}"
        told = {"error": error, "url": call.url(f"{PREFIXES[kind]}{namespace}/{name}")}
        return JSONResponse(told, 409, {"X-Error-Message": error})
    url = call.url(f"{PREFIXES[kind]}{namespace}/{name}")
    return JSONResponse({"url": url, "name": f"{namespace}/{name}", "id": f"{repo:024x}"})


async def _namespace(connection: AsyncConnection, name: str, caller: Caller) -> int:
    """The namespace to make a repository in; administrators make it with their first repository."""
    found = await namespace_id(connection, name)
    if found is None:
        if not caller.is_admin or caller.scope != "write" or caller.namespaces is not None:
            raise Forbidden(f"There is no namespace {name}: an administrator of this hub makes one.")
        found = await add_namespace(connection, name, "org")
        await set_role(connection, caller.account, found, "admin")
    if not caller.writes_in(found):
        raise Forbidden(f"You may not create repositories in {name}.")
    return found


@router.delete("/api/repos/delete")
async def delete(call: Call) -> Response:
    """Remove a repository with all of its revisions."""
    given = await call.json()
    async with call.hub.database.writing() as connection:
        caller = await call.somebody(connection)
        repo = await call.repo_named(connection, _kind(given), *_full_name(given, caller), moved=False)
        call.require_write(repo, caller)
        await remove_repo(connection, repo.id)
        await note(connection, caller.name, "repo.delete", f"{repo.kind} {repo.full_name}")
    return JSONResponse({})


@router.post("/api/repos/move")
async def move(call: Call) -> Response:
    """Give a repository another name, perhaps in another namespace."""
    given = await call.json()
    kind = _kind(given)
    source, target = (_parts(given.get(key), key) for key in ("fromRepo", "toRepo"))
    check_name(target[0], "namespace")
    check_name(target[1], "repository")
    try:
        async with call.hub.database.writing() as connection:
            caller = await call.somebody(connection)
            repo = await call.repo_named(connection, kind, *source, moved=False)
            call.require_write(repo, caller)
            owner = await _namespace(connection, target[0], caller)
            there = await find_repo(connection, kind, *target)
            if there is not None and there.id != repo.id:
                raise Conflict(f"{'/'.join(target)} is there already.")
            await keep_name(connection, repo)
            name = {"name": target[1], "folded": target[1].casefold()}
            await change_repo(connection, repo.id, namespace_id=owner, **name)
            if owner != repo.namespace_id:
                await require_kept_within(
                    connection, call.hub.settings, replace(repo, namespace_id=owner, namespace=target[0])
                )
            await note(connection, caller.name, "repo.move", f"{kind} {repo.full_name}", {"to": "/".join(target)})
    except IntegrityError as error:
        raise Conflict(f"{'/'.join(target)} is there already.") from error
    return JSONResponse({})


@router.put("/api/{kind}/{namespace}/{name}/settings")
async def settings(call: Call) -> Response:
    """Set whether a repository is private and whether it is gated."""
    given = await call.json()
    values: dict[str, Any] = {}
    if "visibility" in given or "private" in given:
        private = given.get("private", given.get("visibility") == "private")
        if not isinstance(private, bool):
            raise BadRequest("private is true or false.")
        values["private"] = private
    if "gated" in given:
        if given["gated"] not in GATES:
            raise BadRequest("gated is false, auto or manual.")
        values["gated"] = given["gated"] or ""
    if isinstance(given.get("strict"), bool):
        values["strict"] = given["strict"]
    async with call.hub.database.writing() as connection:
        repo = await call.writable_repo(connection)
        caller = await call.caller(connection)
        if values:
            await change_repo(connection, repo.id, **values)
            await note(connection, caller.name, "repo.settings", f"{repo.kind} {repo.full_name}", values)
    return JSONResponse({})


@router.get("/api/{kind}/{name}")
async def without_namespace(call: Call) -> Response:
    """Every repository of this hub has a namespace."""
    raise RepoNotFound(anonymous="authorization" not in call.request.headers)


def _kind(given: dict[str, Any]) -> str:
    kind = given.get("type") or "model"
    if kind not in KINDS:
        raise NotImplementedHere(f"repositories of type {str(kind)[:40]}")
    return str(kind)


def _full_name(given: dict[str, Any], caller: Caller) -> tuple[str, str]:
    name, organization = given.get("name"), given.get("organization") or caller.name
    if not isinstance(name, str) or not isinstance(organization, str):
        raise BadRequest("A repository needs a name.")
    if "/" in name:
        organization, _, name = name.partition("/")
    return organization, name


def _parts(text: Any, key: str) -> tuple[str, str]:
    if not isinstance(text, str) or text.count("/") != 1:
        raise BadRequest(f"{key} is not of the form namespace/name.")
    namespace, _, name = text.partition("/")
    return namespace, name
