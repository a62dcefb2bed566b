"""The body of a commit: JSON lines, read one at a time, so that memory does not grow with the commit."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from hfbench.registry.errors import BadRequest, TooLarge
from hfbench.registry.names import COMMIT, SHA256, check_path
from hfbench.registry.plain import plain_text, read_json
from hfbench.units import MIB

LARGEST_REGULAR = 10 * MIB
"""Bytes of a file that is sent within the commit; larger ones are uploaded before it."""
LONGEST_LINE = LARGEST_REGULAR * 4 // 3 + 64 * 1024
MOST_CHANGES = 200_000
LONGEST_TEXT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Head:
    """The first line: what the commit says of itself."""

    title: str
    message: str
    parent: str


@dataclass(frozen=True, slots=True)
class PutContent:
    """A file whose bytes are in the commit."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class PutUploaded:
    """A file that was uploaded before, by its SHA-256."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Delete:
    """A file or a folder that goes."""

    path: str
    is_folder: bool


Step = Head | PutContent | PutUploaded | Delete


async def steps(body: AsyncIterator[bytes]) -> AsyncIterator[Step]:
    """The steps of a commit in their order, the head first; BadRequest names the line that is wrong."""
    number = 0
    async for line in _lines(body):
        number += 1
        if number > MOST_CHANGES:
            raise TooLarge(f"The commit has more than {MOST_CHANGES:,} lines: make several.")
        step = _step(line, number)
        if isinstance(step, Head) != (number == 1):
            raise BadRequest(f"Line {number} of the commit is out of place: the header is the first, and the only one.")
        yield step
    if not number:
        raise BadRequest("The commit is empty.")


async def _lines(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = bytearray()
    async for piece in body:
        seen = len(rest)
        rest += piece
        begin = 0
        while (end := rest.find(b"\n", max(begin, seen))) >= 0:
            if end > begin:
                yield bytes(memoryview(rest)[begin:end])
            begin = end + 1
        del rest[:begin]
        if len(rest) > LONGEST_LINE:
            raise TooLarge(
                f"A file in the commit is larger than {LARGEST_REGULAR // MIB} MiB: upload it by LFS or Xet."
            )
    if rest.strip():
        yield bytes(rest)


def _step(line: bytes, number: int) -> Step:
    where = f"Line {number} of the commit"
    try:
        told = read_json(line)
        key, value = told["key"], told["value"]
        if not isinstance(value, dict):
            raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise BadRequest(f"{where} is no JSON object with a key and a value.") from error
    if key == "header":
        return _head(value, where)
    path = _text(value, "path", where)
    check_path(path.removesuffix("/") if key == "deletedFolder" else path)
    if key == "file":
        return PutContent(path, _content(value, where))
    if key == "lfsFile":
        sha256 = _text(value, "oid", where)
        if value.get("algo", "sha256") != "sha256" or not SHA256.fullmatch(sha256):
            raise BadRequest(f"{where}: the oid of {path} is no SHA-256.")
        return PutUploaded(path, sha256)
    if key in ("deletedFile", "deletedFolder", "deletedEntry"):
        return Delete(path.removesuffix("/"), key == "deletedFolder")
    raise BadRequest(f"{where} has the unknown key {str(key)[:40]!r}.")


def _head(value: dict[str, Any], where: str) -> Head:
    parent = value.get("parentCommit") or ""
    if parent and not (isinstance(parent, str) and COMMIT.fullmatch(parent)):
        raise BadRequest(f"{where}: parentCommit is no commit of 40 hexadecimal digits.")
    title = value.get("summary") or "Update files"
    message = value.get("description") or ""
    if not isinstance(title, str) or not isinstance(message, str) or len(title) + len(message) > LONGEST_TEXT:
        raise BadRequest(f"{where}: the summary or description is no text, or too long.")
    return Head(plain_text(title), plain_text(message), parent)


def _content(value: dict[str, Any], where: str) -> bytes:
    text = value.get("content")
    if not isinstance(text, str):
        raise BadRequest(f"{where} has no content.")
    if value.get("encoding", "utf-8") != "base64":
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"{where}: the content is not base64.") from error


def _text(value: dict[str, Any], key: str, where: str) -> str:
    text = value.get(key)
    if not isinstance(text, str):
        raise BadRequest(f"{where} has no {key}.")
    return text
