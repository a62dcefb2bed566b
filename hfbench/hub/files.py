"""The bytes of a file on a hub, whole or in part: those that were asked for, at a speed worth waiting for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from hfbench.errors import HfbenchError
from hfbench.hub.refusals import Asked, HubError, not_a_hub, too_slow, translated
from hfbench.hub.session import within

WINDOW, LEAST = 30.0, 4096
"""An answer that brings fewer bytes than that in so many seconds is given up."""

HEADERS_TIME = 60.0
"""Seconds until an answer begins, redirects included."""

Opened = tuple[Any, Mapping[str, str]]
"""An answer, and the headers of the first one where it was redirected."""

_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)")


class FileStream:
    """A file as it comes; a context manager. Inside it, `start` is the first byte that comes and `total` the size of
    the file, None when the hub does not say. `etag` and `commit` are the hub's names of the content and the revision.
    """

    start: int = 0
    total: int | None = None
    etag: str = ""
    commit: str = ""

    def __init__(
        self, asked: Asked, open: Callable[[], AbstractContextManager[Opened]], headers: Mapping[str, str]
    ) -> None:
        self._asked, self._open, self._headers = asked, open, headers
        self._answer: AbstractContextManager[Opened] | None = None
        self._response: Any = None

    def __enter__(self) -> Self:
        answer = self._open()
        self._response, first = within(HEADERS_TIME, answer.__enter__, self._asked)
        self._answer = answer
        try:
            self._read_headers(first)
        except HfbenchError:
            answer.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._answer is not None:
            self._answer.__exit__(kind, error, at)

    def chunks(self, most: int | None = None, *, seconds: float | None = None) -> Iterator[bytes]:
        """The bytes in pieces of any size, `most` at most all together. Unreachable when they drip, break off, or take
        longer than `seconds`."""
        now = time.monotonic()
        deadline = now + seconds if seconds is not None else None
        left, window, brought = most, now + WINDOW, 0
        try:
            for piece in self._response.iter_raw():
                now = time.monotonic()
                brought += len(piece)
                if deadline is not None and now > deadline:
                    raise too_slow(f"took longer than {seconds:g} s", self._asked)
                if now > window:
                    if brought < LEAST:
                        raise too_slow(f"sends less than {LEAST // 1024} KiB in {WINDOW:g} s", self._asked)
                    window, brought = now + WINDOW, 0
                if left is not None:
                    piece, left = piece[:left], left - len(piece)
                if piece:
                    yield piece
                if left is not None and left <= 0:
                    return
        except (HfbenchError, GeneratorExit):
            raise
        except Exception as error:
            raise translated(error, self._asked) from error

    def _read_headers(self, first: Mapping[str, str]) -> None:
        response = self._response
        if response.headers.get("content-encoding", "identity") != "identity":
            raise not_a_hub("it sends a file in another encoding than was asked for", self._asked)
        self.etag = (first.get("x-linked-etag") or first.get("etag") or "").strip().removeprefix("W/").strip('"')
        self.commit = first.get("x-repo-commit", "")
        if response.status_code == 206:
            self._read_range(response.headers.get("content-range", ""))
            return
        if response.status_code != 200:
            raise not_a_hub(f"it answers {response.status_code} where a file belongs", self._asked)
        size = response.headers.get("content-length", "")
        self.total = int(size) if size.isdecimal() and len(size) < 20 else None

    def _read_range(self, said: str) -> None:
        match, wanted = _RANGE.fullmatch(said.strip()), self._headers.get("range", "")
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        wrong = match is None or not wanted or int(match[1]) != int(first or 0)
        if match is None or wrong or int(match[2]) < int(match[1]) or (last and int(match[2]) > int(last)):
            raise HubError(
                f"asked for {wanted or 'the whole'}, and the hub sends {said or 'a part it does not name'}",
                where=self._asked.where,
            )
        self.start = int(match[1])
        self.total = int(match[3]) if match[3] != "*" else None


def asked_range(start: int, end: int | None) -> dict[str, str]:
    """The header that asks for the bytes from `start` up to `end`, exclusive; empty for the whole."""
    if not start and end is None:
        return {}
    return {"range": f"bytes={start}-{'' if end is None else end - 1}"}
