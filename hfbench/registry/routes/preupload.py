"""Before an upload: how each file is to be sent, and which are there already."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from starlette.responses import JSONResponse, Response

from hfbench.registry.call import Call
from hfbench.registry.database.content import lost_among
from hfbench.registry.errors import BadRequest
from hfbench.registry.modes import mode_of
from hfbench.registry.names import check_path, is_size
from hfbench.registry.quotas import require_room
from hfbench.registry.revisions.entries import Entry
from hfbench.registry.routing import router
from hfbench.units import MIB

MOST_FILES = 1000
LARGEST_QUESTION = 16 * MIB
"""Bytes of so many paths and samples."""


@router.post("/api/{kind}/{namespace}/{name}/preupload/{revision}")
async def preupload(call: Call) -> Response:
    """The mode of every file, with the hash of what is at its path, so that unchanged ones are not sent."""
    files = (await call.json(LARGEST_QUESTION)).get("files")
    if not isinstance(files, list) or len(files) > MOST_FILES:
        raise BadRequest(f"files is no list of at most {MOST_FILES} files.")
    asked = [_asked(file) for file in files]
    told = []
    async with call.hub.database.reading() as connection:
        repo = await call.writable_repo(connection)
        commit = await call.revision(connection, repo)
        found = {path: await call.hub.trees.find(connection, commit.tree, path) for path, _, _ in asked}
        lost = await lost_among(connection, [entry.target for entry in found.values() if entry])
        fresh = sum(size for path, size, _ in asked if not _may_be(found[path], size, lost))
        await require_room(connection, call.hub.settings, repo, fresh)
        for path, size, sample in asked:
            answer: dict[str, Any] = {"path": path, "uploadMode": mode_of(path, size, sample), "shouldIgnore": False}
            there = found[path]
            if there is not None and not there.is_folder and there.target not in lost:
                answer["oid"] = there.target if there.is_lfs else there.git_id
            told.append(answer)
    return JSONResponse({"files": told})


def _may_be(there: Entry | None, size: int, lost: set[str]) -> bool:
    """Whether a file may be the one that is there: then no room is asked for until its hash says otherwise."""
    return there is not None and not there.is_folder and there.size == size and there.target not in lost


def _asked(file: Any) -> tuple[str, int, bytes]:
    if not isinstance(file, dict) or not isinstance(file.get("path"), str):
        raise BadRequest("A file of the preupload has no path.")
    path, size = check_path(file["path"]), file.get("size")
    if not is_size(size):
        raise BadRequest(f"{path} has no size.")
    try:
        return path, size, base64.b64decode(file.get("sample") or "")
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadRequest(f"The sample of {path} is not base64.") from error
