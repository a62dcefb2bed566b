"""Hands content out: whole files by path, so that no byte passes through Python; the rest as it is read."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hfbench.registry.hub import Hub
from hfbench.registry.storage.reading import Plan
from hfbench.registry.storage.trust import DamagedError
from hfbench.units import KIB

log = logging.getLogger("hfbench.registry")
PATHSEND = "http.response.pathsend"
SENT = 128 * KIB
"""Bytes of one message to the server, which takes eight before it makes us wait: a slow reader costs a MiB or two."""
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Content(Response):
    """An answer that is a blob, or the part of it that was asked for."""

    def __init__(self, hub: Hub, plan: Plan, headers: Mapping[str, str], *, range_header: str = "") -> None:
        self.hub, self.plan = hub, plan
        self.background, self.body = None, b""
        self.start, self.end, self.status_code = wanted(range_header, plan.size)
        told = dict(headers)
        told["Accept-Ranges"] = "bytes"
        told["Content-Length"] = str(self.end - self.start)
        if self.status_code == 206:
            told["Content-Range"] = f"bytes {self.start}-{self.end - 1}/{plan.size}"
        elif self.status_code == 416:
            told["Content-Range"] = f"bytes */{plan.size}"
        self.init_headers(told)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it: headers alone for HEAD and for a range that is not there."""
        bodiless = scope["method"] == "HEAD" or self.status_code == 416
        by_path = self.plan.path is not None and not (self.plan.unchecked and self.status_code == 200)
        if not bodiless and by_path and self.hub.settings.accel_prefix:
            await self._hand_to_proxy(send)
            return
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if bodiless:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        self.hub.metrics.sent_bytes += self.end - self.start
        if self.status_code == 200 and by_path and PATHSEND in scope.get("extensions", {}):
            await send({"type": PATHSEND, "path": str(self.plan.path)})
            return
        await self._stream(receive, send)

    async def _stream(self, receive: Receive, send: Send) -> None:
        """Send in small pieces, of which the server holds several, until the end or until nobody reads any more."""
        gone = asyncio.create_task(_gone(receive))
        try:
            async for piece in self.hub.reader.stream(self.plan, self.start, self.end):
                for start in range(0, len(piece), SENT):
                    await send({"type": "http.response.body", "body": piece[start : start + SENT], "more_body": True})
                if gone.done():
                    return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except DamagedError as error:
            log.error("%s", error)  # the answer ends before its length: the client sees a broken connection
        finally:
            gone.cancel()

    async def _hand_to_proxy(self, send: Send) -> None:
        """nginx answers from the file, ranges included; our headers go with it."""
        assert self.plan.path is not None
        self.hub.metrics.sent_bytes += self.end - self.start
        where = quote(str(self.plan.path.relative_to(self.hub.layout.root)))
        drop = (b"content-length", b"content-range", b"accept-ranges")
        headers = [(name, value) for name, value in self.raw_headers if name not in drop]
        headers.append((b"x-accel-redirect", f"{self.hub.settings.accel_prefix.rstrip('/')}/{where}".encode("latin-1")))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def wanted(header: str, size: int) -> tuple[int, int, int]:
    """Start, end and status of a Range header over a blob of `size` bytes: 206, 416 beyond it, and 200 for the whole,
    which also answers what is no single range."""
    match = _RANGE.fullmatch(header.strip().replace(" ", ""))
    if not match or match[0] == "bytes=-":
        return 0, size, 200
    if not match[1]:
        start, end = max(0, size - int(match[2])), size
    else:
        start = int(match[1])
        end = min(int(match[2]) + 1, size) if match[2] else size
        if match[2] and int(match[2]) < start:
            return 0, size, 200
    return (start, end, 206) if start < end else (0, 0, 416)
