"""One request: who asks, which repository and revision it is about, and its body within limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.requests import ClientDisconnect, Request

from hfbench.registry.access.caller import ANONYMOUS, Caller
from hfbench.registry.access.rules import ACCEPTED, may_open, may_see, may_write
from hfbench.registry.access.tokens import digest_of
from hfbench.registry.database.history import Commit, find_revision
from hfbench.registry.database.people import caller_of
from hfbench.registry.database.repos import Repo, find_moved, find_repo, gate_state
from hfbench.registry.errors import (
    BadRequest,
    BadToken,
    Forbidden,
    Gated,
    NeedsToken,
    Refusal,
    RepoNotFound,
    RevisionNotFound,
    TooLarge,
    TooSlow,
)
from hfbench.registry.hub import Hub
from hfbench.registry.plain import TooDeepError, read_json
from hfbench.registry.routing import KINDS
from hfbench.units import KIB, MIB

LARGEST_JSON = 4 * MIB
LARGEST_OF_ANYBODY = MIB
"""Bytes of a body that are gathered of a client who did not say who it is."""
SLOWEST = KIB
"""Bytes a second that a body has to come with."""
T = TypeVar("T")
TRUE = ("1", "true", "True", "yes")


class Call:
    """A request with the hub it came to. `params` are the parts of its path."""

    def __init__(self, hub: Hub, request: Request, params: Mapping[str, str]) -> None:
        self.hub, self.request, self.params = hub, request, params
        self._caller: Caller | None = None

    @property
    def kind(self) -> str:
        """`model` or `dataset`."""
        return KINDS.get(self.params.get("kind", "models"), "model")

    @property
    def query(self) -> Mapping[str, str]:
        """Parameters of the query, the last of each name."""
        return self.request.query_params

    def flag(self, name: str) -> bool:
        """Whether a parameter of the query says yes."""
        return self.query.get(name, "") in TRUE

    def url(self, path: str, **query: object) -> str:
        """A URL on the hub's public address."""
        told = f"?{urlencode(query)}" if query else ""
        return f"{self.hub.settings.base_url}/{path.lstrip('/')}{told}"

    async def caller(self, connection: AsyncConnection) -> Caller:
        """Who asks; BadToken when a token was sent that lets nobody in."""
        if self._caller is None:
            self._caller = await self._authenticate(connection)
        return self._caller

    async def somebody(self, connection: AsyncConnection) -> Caller:
        """Who asks; NeedsToken when nobody is known."""
        caller = await self.caller(connection)
        if caller.anonymous:
            raise NeedsToken
        return caller

    async def repo(self, connection: AsyncConnection) -> Repo:
        """The repository of the path, if the caller may see it; else it is not found."""
        return await self.repo_named(connection, self.kind, self.params["namespace"], self.params["name"])

    async def repo_named(
        self, connection: AsyncConnection, kind: str, namespace: str, name: str, *, moved: bool = True
    ) -> Repo:
        """A repository by its name, or with `moved` by one it had before, if the caller may see it; else it is not
        found."""
        caller = await self.caller(connection)
        repo = await find_repo(connection, kind, namespace, name)
        if repo is None and moved:
            repo = await find_moved(connection, kind, namespace, name)
        if repo is None or not may_see(caller, repo):
            raise RepoNotFound(anonymous=caller.anonymous)
        if repo.disabled:
            raise Refusal(403, "Access to this resource is disabled.")
        return repo

    async def open_repo(self, connection: AsyncConnection) -> Repo:
        """The repository of the path, if the caller may read its files; Gated when it may only be seen."""
        repo, caller = await self.repo(connection), await self.caller(connection)
        await self.require_open(connection, repo, caller)
        return repo

    async def require_open(self, connection: AsyncConnection, repo: Repo, caller: Caller) -> None:
        """Gated unless the caller may read the files."""
        if not may_open(caller, repo, granted=False):
            state = "" if caller.anonymous else await gate_state(connection, repo.id, caller.account)
            if not may_open(caller, repo, granted=state == ACCEPTED):
                raise Gated(repo.full_name, anonymous=caller.anonymous)

    async def writable_repo(self, connection: AsyncConnection) -> Repo:
        """The repository of the path, if the caller may write to it; Forbidden when it may only be seen."""
        repo, caller = await self.repo(connection), await self.caller(connection)
        self.require_write(repo, caller)
        return repo

    def require_write(self, repo: Repo, caller: Caller) -> None:
        """NeedsToken or Forbidden unless the caller may write."""
        if caller.anonymous:
            raise NeedsToken
        if not may_write(caller, repo):
            why = "this token only reads" if caller.scope == "read" else "you have no write role there"
            raise Forbidden(f"You may not write to {repo.full_name}: {why}.")

    async def revision(self, connection: AsyncConnection, repo: Repo) -> Commit:
        """The commit the path's revision names."""
        name = self.params.get("revision", "main")
        found = await find_revision(connection, repo.id, name)
        if found is None:
            raise RevisionNotFound(name)
        return found

    async def json(self, most: int = LARGEST_JSON) -> dict[str, Any]:
        """The body as an object."""
        body = await self.body(most)
        try:
            told = read_json(body) if body else {}
        except TooDeepError as error:
            raise BadRequest(f"The body {error}.") from error
        except ValueError as error:
            raise BadRequest("The body is no JSON.") from error
        if not isinstance(told, dict):
            raise BadRequest("The body is no JSON object.")
        return told

    async def body(self, most: int, *, is_known: bool = False) -> bytes:
        """The whole body; TooLarge when it has more bytes, and much sooner when nobody is known to send it."""
        if not is_known and most > LARGEST_OF_ANYBODY:
            async with self.hub.database.reading() as connection:
                most = LARGEST_OF_ANYBODY if (await self.caller(connection)).anonymous else most
        taken = bytearray()
        async for piece in self.stream():
            taken += piece
            if len(taken) > most:
                raise TooLarge(f"The body is larger than {most // MIB} MiB.")
        return bytes(taken)

    async def stream(self) -> AsyncIterator[bytes]:
        """The body as it comes; BadRequest when the client leaves before its end, TooSlow when it hardly sends."""
        pieces, waited, taken = self.request.stream(), 0.0, 0
        patience = self.hub.settings.slow_seconds
        try:
            while True:
                begun = time.monotonic()
                async with asyncio.timeout(patience):
                    piece = await anext(pieces)
                waited, taken = waited + time.monotonic() - begun, taken + len(piece)
                if waited > patience and taken < waited * SLOWEST:
                    raise TooSlow
                self.hub.metrics.received_bytes += len(piece)
                if piece:
                    yield piece
        except StopAsyncIteration:
            return
        except ClientDisconnect as error:
            raise BadRequest("The client left before the end of the body.") from error
        except TimeoutError as error:
            raise TooSlow from error

    async def unless_left(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns; it is cancelled when the client leaves before it is done. The body was read."""
        task, left = asyncio.create_task(work), asyncio.create_task(self._left())
        try:
            await asyncio.wait([task, left], return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if task.cancelled():
            raise BadRequest("The client left before the answer.")
        return task.result()

    async def _left(self) -> None:
        """Returns when the client has left."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def _authenticate(self, connection: AsyncConnection) -> Caller:
        scheme, _, secret = self.request.headers.get("authorization", "").partition(" ")
        if not secret.strip():
            return ANONYMOUS
        if scheme.lower() != "bearer":
            raise BadToken
        caller = await caller_of(connection, digest_of(secret.strip()))
        if caller is None:
            raise BadToken
        self.hub.used_tokens.add(caller.token)
        return caller
