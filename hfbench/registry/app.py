"""The application: a request finds its route, a refusal becomes an answer that clients understand."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

from sqlalchemy.exc import DataError, OperationalError
from starlette.applications import Starlette
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hfbench.registry.call import Call
from hfbench.registry.database.trouble import is_damaged
from hfbench.registry.errors import DAMAGED, BadRequest, NotImplementedHere, Refusal, header_text
from hfbench.registry.hub import Hub, open_hub
from hfbench.registry.routes import ALL
from hfbench.registry.routing import Route, router
from hfbench.registry.settings import Settings, passed_settings
from hfbench.registry.storage.cache import make_room
from hfbench.registry.storage.drafts import AT_LEAST, FULL
from hfbench.registry.storage.rebuilding import DamagedError, GivenUpError

log = logging.getLogger("hfbench.registry")
FULL_OF_DATABASES = ("disk is full", "No space left on device")
assert ALL, "the routes are declared by importing them"


class Dispatcher:
    """Answers every request of the hub."""

    hub: Hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find the route by the raw path and let it answer."""
        if scope["type"] != "http":
            return
        started, name, status = time.perf_counter(), "none", 500
        self.hub.metrics.running += 1
        try:
            response, name = await self._answer(scope, receive)
            status = response.status_code
            self.hub.metrics.seconds[name] += time.perf_counter() - started
            await response(scope, receive, send)
        finally:
            self.hub.metrics.running -= 1
            self.hub.metrics.requests[name, status] += 1
            log.info("%s %s %d %.0f ms", scope["method"], name, status, (time.perf_counter() - started) * 1e3)

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[Response, str]:
        method, raw_path = scope["method"], scope.get("raw_path") or scope["path"].encode()
        found = router.find(method, raw_path.partition(b"?")[0])
        if found is None:
            return refused(_no_route(method, raw_path)), "none"
        route, params = found
        try:
            return await route.handler(Call(self.hub, Request(scope, receive), params)), _name(route)
        except Exception as error:
            if _is_full(error):  # of the database, say: whoever tries again finds room where there can be any
                await asyncio.to_thread(make_room, self.hub.layout, AT_LEAST)
            if is_damaged(error):
                self.hub.damaged = True
            return refused(_refusal(error)), _name(route)


def refused(refusal: Refusal) -> Response:
    """A refusal as stock clients read it: a code, a message, and JSON."""
    found = refusal.found.encode("utf-8", "replace").decode()
    headers = {**refusal.headers, "X-Error-Message": header_text(found)}
    if refusal.code:
        headers["X-Error-Code"] = refusal.code
    return JSONResponse({"error": found}, refusal.status, headers)


def _refusal(error: Exception) -> Refusal:
    """What a client is told of an error; the sentence of an unforeseen one stays in the log."""
    if isinstance(error, Refusal):
        return error
    if _is_full(error):
        return Refusal(507, "The hub's disk is full: nothing of this request was kept.")
    if isinstance(error, GivenUpError):
        return Refusal(503, "The hub stops: try again.", headers={"Retry-After": "2"})
    if isinstance(error, DamagedError):
        log.error("%s", error)
        return Refusal(500, "The hub's copy of this file is damaged: hfbench registry fsck tells more.")
    if isinstance(error, UnicodeEncodeError | OverflowError | DataError):
        return BadRequest("The request has text or numbers that cannot be kept.")
    if isinstance(error, OperationalError):
        log.exception("the database refused")
        return Refusal(503, "The hub's database is busy or gone: try again.", headers={"Retry-After": "2"})
    if is_damaged(error):
        log.exception("the database is damaged")
        return Refusal(503, DAMAGED)
    log.exception("a request failed")
    return Refusal(500, "The hub failed on this request; its log says why.")


def _is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in FULL
    return isinstance(error, OperationalError) and any(words in str(error.orig) for words in FULL_OF_DATABASES)


def _no_route(method: str, raw_path: bytes) -> Refusal:
    path = raw_path.decode("latin-1")
    if methods := router.methods(raw_path):
        return Refusal(405, f"{method} is not answered here.", headers={"Allow": ", ".join(methods)})
    if path.startswith("/api/") or ".git/" in path:
        return NotImplementedHere(f"{method} {path[:200]}")
    return Refusal(404, "There is nothing at this address.")


def _name(route: Route) -> str:
    """The route without its parameters' values: no name and no token gets into logs and metrics."""
    return route.pattern


def make_app(settings: Settings) -> ASGIApp:
    """The ASGI application of a hub whose folder and schema are there."""
    dispatcher = Dispatcher()

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        dispatcher.hub = open_hub(settings)
        tending = asyncio.create_task(dispatcher.hub.tend())
        try:
            yield
        finally:
            tending.cancel()
            await dispatcher.hub.close()

    around = ServerErrorMiddleware(dispatcher)
    living = Starlette(lifespan=lifespan)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        """Every path is the dispatcher's, of whatever characters it is."""
        await (living if scope["type"] == "lifespan" else around)(scope, receive, send)

    return application


def make_worker() -> ASGIApp:
    """The application in a worker process, by the settings its server handed on."""
    return make_app(passed_settings())


__all__ = ["make_app", "make_worker", "refused"]
