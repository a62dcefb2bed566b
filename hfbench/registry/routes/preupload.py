"""Before an upload: how each file is to be sent, and which are there already."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from starlette.responses import JSONResponse, Response

from hfbench.registry.call import Call
from hfbench.registry.errors import BadRequest
from hfbench.registry.names import check_path
from hfbench.registry.quotas import require_room
from hfbench.registry.routing import router
from hfbench.units import MIB

LARGEST_TEXT = MIB
"""Bytes up to which text is sent within the commit."""
MOST_FILES = 1000
ALWAYS_LFS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx", ".npz", ".npy", ".h5", ".msgpack", ".parquet")


@router.post("/api/{kind}/{namespace}/{name}/preupload/{revision}")
async def preupload(call: Call) -> Response:
    """The mode of every file, with the hash of what is at its path, so that unchanged ones are not sent."""
    files = (await call.json()).get("files")
    if not isinstance(files, list) or len(files) > MOST_FILES:
        raise BadRequest(f"files is no list of at most {MOST_FILES} files.")
    asked = [_asked(file) for file in files]
    told = []
    async with call.hub.database.reading() as connection:
        repo = await call.writable_repo(connection)
        commit = await call.revision(connection, repo)
        await require_room(connection, call.hub.settings, repo, sum(size for _, size, _ in asked))
        for path, size, sample in asked:
            answer: dict[str, Any] = {"path": path, "uploadMode": _mode(path, size, sample), "shouldIgnore": False}
            there = await call.hub.trees.find(connection, commit.tree, path)
            if there is not None and not there.is_folder:
                answer["oid"] = there.target if there.is_lfs else there.git_id
            told.append(answer)
    return JSONResponse({"files": told})


def _mode(path: str, size: int, sample: bytes) -> str:
    if size == 0:
        return "regular"
    if size > LARGEST_TEXT or path.lower().endswith(ALWAYS_LFS):
        return "lfs"
    return "regular" if _is_text(sample) else "lfs"


def _is_text(sample: bytes) -> bool:
    """UTF-8 without NUL; the sample may end within a character."""
    if b"\0" in sample:
        return False
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(sample) - 3 and error.reason == "unexpected end of data"
    return True


def _asked(file: Any) -> tuple[str, int, bytes]:
    if not isinstance(file, dict) or not isinstance(file.get("path"), str):
        raise BadRequest("A file of the preupload has no path.")
    path, size = check_path(file["path"]), file.get("size")
    if not isinstance(size, int) or size < 0:
        raise BadRequest(f"{path} has no size.")
    try:
        return path, size, base64.b64decode(file.get("sample") or "")
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadRequest(f"The sample of {path} is not base64.") from error
