"""Files of a revision: what they are (HEAD) and what is in them (GET, whole or in part)."""

from __future__ import annotations

import mimetypes
from urllib.parse import quote

from starlette.responses import Response

from hfbench.registry.call import Call
from hfbench.registry.errors import EntryNotFound
from hfbench.registry.names import path_trouble
from hfbench.registry.revisions.entries import Entry
from hfbench.registry.routing import router
from hfbench.registry.sending import Content

COUNTED = "config.json"
"""The file whose download counts as one of the model."""
UNCHECKED = "integrity; this hub has not read the whole of this file since it started, and sends a part of it unchecked"


@router.get("/{namespace}/{name}/resolve/{revision}/{path...}")
async def resolve(call: Call) -> Response:
    """A file of a model."""
    return await _resolve(call)


@router.get("/{kind}/{namespace}/{name}/resolve/{revision}/{path...}")
async def resolve_of_kind(call: Call) -> Response:
    """A file of a dataset."""
    return await _resolve(call)


async def _resolve(call: Call) -> Response:
    path, request = call.params["path"], call.request
    async with call.hub.database.reading() as connection:
        repo = await call.repo(connection)
        commit = await call.revision(connection, repo)
        await call.require_open(connection, repo, await call.caller(connection))
        entry = None if path_trouble(path) else await call.hub.trees.find(connection, commit.tree, path)
        if entry is None or entry.is_folder:
            raise EntryNotFound(path, commit.id)
        headers = _headers(entry, commit.id, path)
        if _is_known(request.headers.get("if-none-match", ""), headers["ETag"]):
            return Response(status_code=304, headers=headers)
        plan = await call.hub.reader.plan(connection, entry.target)
    wants_range = request.headers.get("range", "")
    if (condition := request.headers.get("if-range")) and condition != headers["ETag"]:
        wants_range = ""
    if request.method == "GET":
        if path == COUNTED:
            call.hub.downloads[repo.id] += 1
        plan = await call.hub.reader.ready(plan, whole=not wants_range)
        if plan.unchecked and wants_range:
            headers["X-HF-Warning"] = UNCHECKED
    return Content(call.hub, plan, headers, range_header=wants_range)


def _headers(entry: Entry, commit: str, path: str) -> dict[str, str]:
    """What clients name their copy by, on every answer."""
    etag = f'"{entry.target if entry.is_lfs else entry.git_id}"'
    name = path.rpartition("/")[2]
    headers = {
        "X-Repo-Commit": commit,
        "ETag": etag,
        "Content-Type": mimetypes.guess_type(name)[0] or "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "X-Linked-Size": str(entry.size),
    }
    if entry.is_lfs:
        headers["X-Linked-ETag"] = etag
    return headers


def _is_known(header: str, etag: str) -> bool:
    tags = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return etag in tags or "*" in tags
