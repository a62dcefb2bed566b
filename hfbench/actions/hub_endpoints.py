"""hub.endpoints: the hubs this machine knows, where their tokens lie, and whether they answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import cut, paragraph
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.hub.endpoints import Endpoint
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class KnownEndpoint:
    """One hub. `token` tells its place; `account` and `problem` are what asking it brought, empty while not asked."""

    name: str
    url: str
    default: bool
    token: str
    has_token: bool
    account: str = ""
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class HubEndpointsResult:
    """All endpoints, the configured ones last; `failed` when one was asked and did not answer as it should."""

    endpoints: tuple[KnownEndpoint, ...]
    offline: str
    """What forbids the network, empty when nothing does."""
    failed: bool

    def lines(self) -> list[str]:
        """A row an endpoint, and below it what is wrong."""
        width = max(len(each.name) for each in self.endpoints)
        told = [line for each in self.endpoints for line in _told(each, width)]
        return [*told, *([f"~ offline: {self.offline} forbids the network"] if self.offline else [])]


@action("hub.endpoints", result=HubEndpointsResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class HubEndpoints:
    """List the hubs this machine knows and where their tokens lie, and ask them on request."""

    ask: bool = param("Ask each hub whose token it is", default=False)

    def perform(self, run: Run) -> HubEndpointsResult:
        """Read the settings, and ask the hubs one after the other. ConfigError for wrong settings."""
        from hfbench.hub.endpoints import endpoint, endpoints, offline_reason

        default = endpoint()
        told = tuple(self._known(each, default=each == default) for each in endpoints().values())
        return HubEndpointsResult(endpoints=told, offline=offline_reason(), failed=any(each.problem for each in told))

    def _known(self, at: Endpoint, *, default: bool) -> KnownEndpoint:
        from hfbench.errors import HfbenchError

        account = problem = ""
        has_token = False
        try:
            has_token = at.token is not None
            if self.ask:
                account = _account(at, has_token=has_token)
        except HfbenchError as error:
            problem = str(error)
        return KnownEndpoint(
            name=at.name,
            url=at.url,
            default=default,
            token=at.source.said,
            has_token=has_token,
            account=account,
            problem=problem,
        )


def _account(at: Endpoint, *, has_token: bool) -> str:
    """Whose token it is; without one, whether the hub lists models."""
    from hfbench.hub.client import HubClient
    from hfbench.hub.search import search

    client = HubClient(at)
    if has_token:
        return client.whoami()
    search(client, limit=1)
    return "nobody"


def _told(each: KnownEndpoint, width: int) -> Iterator[str]:
    token = f"token in {each.token}" + ("" if each.has_token else ", which holds none") if each.token else "no token"
    asked = f", answers to {printable(each.account)}" if each.account else ""
    default = ", the default" if each.default else ""
    yield cut(f"{each.name:<{width}}  {printable(each.url)}  {token}{asked}{default}")
    if each.problem:
        yield from paragraph(f"x {each.problem}", width + 2, first=" " * (width + 2), later=" " * (width + 4))
