"""Finds the route of a request from its raw path: an encoded slash belongs to a name, a plain one divides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.responses import Response

if TYPE_CHECKING:
    from hfbench.registry.call import Call

Handler = Callable[["Call"], Awaitable[Response]]
KINDS = {"models": "model", "datasets": "dataset"}
"""Kinds of repositories as routes spell them."""


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a pattern: literal segments, `{name}` for one segment, and `{name...}` for all that follow.

    `{kind}` takes `models` and `datasets` alone.
    """

    method: str
    pattern: str
    handler: Handler
    segments: tuple[str, ...]

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """The parameters, decoded, or None."""
        wide = bool(self.segments) and self.segments[-1].endswith("...}")
        fixed = self.segments[:-1] if wide else self.segments
        if len(segments) < len(fixed) or (not wide and len(segments) > len(fixed)):
            return None
        found: dict[str, str] = {}
        for want, have in zip(fixed, segments, strict=False):
            if not want.startswith("{"):
                if want != have:
                    return None
            elif want == "{kind}" and have not in KINDS:
                return None
            else:
                found[want[1:-1]] = unquote(have)
        if wide:
            found[self.segments[-1][1:-4]] = "/".join(map(unquote, segments[len(fixed) :]))
        return found


class Router:
    """All routes of the hub. Declared by `@router.get(...)` and its like; literal segments win over names."""

    def __init__(self) -> None:
        self.routes: list[Route] = []

    def get(self, pattern: str) -> Callable[[Handler], Handler]:
        """Declare what answers GET and HEAD."""
        return self._declare("GET", pattern)

    def post(self, pattern: str) -> Callable[[Handler], Handler]:
        """Declare what answers POST."""
        return self._declare("POST", pattern)

    def put(self, pattern: str) -> Callable[[Handler], Handler]:
        """Declare what answers PUT."""
        return self._declare("PUT", pattern)

    def delete(self, pattern: str) -> Callable[[Handler], Handler]:
        """Declare what answers DELETE."""
        return self._declare("DELETE", pattern)

    def _declare(self, method: str, pattern: str) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self.routes.append(Route(method, pattern, handler, tuple(pattern.strip("/").split("/"))))
            return handler

        return declare

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]] | None:
        """The route of a request with its parameters; HEAD is answered as GET."""
        wanted = "GET" if method == "HEAD" else method
        segments = raw_path.decode("latin-1").strip("/").split("/")
        matches = ((route, found) for route, found in self._matches(segments) if route.method == wanted)
        return max(matches, key=lambda match: _literals(match[0]), default=None)

    def methods(self, raw_path: bytes) -> list[str]:
        """The methods this path would answer."""
        segments = raw_path.decode("latin-1").strip("/").split("/")
        return sorted({route.method for route, _ in self._matches(segments)})

    def _matches(self, segments: Sequence[str]) -> Iterator[tuple[Route, dict[str, str]]]:
        for route in self.routes:
            if (found := route.match(segments)) is not None:
                yield route, found


def _literals(route: Route) -> tuple[int, int]:
    return sum(not segment.startswith("{") for segment in route.segments), len(route.segments)


router = Router()
