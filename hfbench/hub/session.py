"""huggingface_hub's HTTP client with limits: a token goes to its own hub alone, and nothing waits for ever."""

from __future__ import annotations

import os
import queue
import ssl
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hfbench.errors import HfbenchError, MissingError
from hfbench.hub.endpoints import Endpoint, offline_reason, origin_of
from hfbench.hub.refusals import Asked, offline, too_slow

CONNECT, READ = 10.0, 30.0
"""Seconds until somebody answers the call, and between two pieces of an answer."""
LONG_READ = 600.0
"""The same where huggingface_hub itself sets no limit: a hub may hash a large upload before it answers."""
MOST_CONNECTIONS = 32

T = TypeVar("T")
Origin = tuple[str, str, int]

_installing = threading.Lock()
_trusted: dict[str, set[Origin]] = {}
_session: Callable[[], Any] | None = None


def session() -> Any:
    """The client all requests of this process go through. MissingError without huggingface_hub.

    Proxies and certificates come from the environment: HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE, REQUESTS_CA_BUNDLE.
    """
    global _session
    with _installing:
        if _session is None:
            _session = _install()
    return _session()


def http() -> Any:
    """The library that the client is of: httpx, or its successor."""
    return import_module(type(session()).__module__.partition(".")[0])


def timeouts(read: float = READ) -> Any:
    """Time limits of one request, in seconds between two signs of life."""
    return http().Timeout(read, connect=CONNECT)


def trust(endpoint: Endpoint, token: str) -> str:
    """Allow a token to be sent to its own hub, and return the header that sends it."""
    header = f"Bearer {token}"
    scheme, host, port = endpoint.origin
    upgraded = {("https", host, 443)} if (scheme, port) == ("http", 80) else set()
    _trusted.setdefault(header, set()).update({endpoint.origin}, upgraded)
    return header


def within(seconds: float, work: Callable[[], T], asked: Asked) -> T:
    """What `work` returns; Unreachable when that takes longer.

    The work is done on a daemon thread, which is left behind: Ctrl-C, a name server that hangs and a hub that sends a
    byte a minute hold nobody.
    """
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((work(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise too_slow(f"no whole answer in {seconds:g} s", asked) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # without an error it is what work returned


def _install() -> Callable[[], Any]:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        from huggingface_hub import get_session, set_client_factory
    except ImportError:
        raise MissingError(
            "needs huggingface_hub, which this Python lacks",
            where="hub",
            remedy="install it with: pip install 'hfbench[hub]'",
        ) from None
    library = import_module(type(get_session()).__module__.partition(".")[0])
    more = {"verify": context} if (context := _certificates()) is not None else {}

    def make() -> Any:
        return library.Client(
            event_hooks={"request": [_guard]},
            follow_redirects=True,
            timeout=library.Timeout(LONG_READ, connect=CONNECT),
            limits=library.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS),
            **more,
        )

    set_client_factory(make)
    found: Callable[[], Any] = get_session
    return found


def _guard(request: Any) -> None:
    """Send nothing while the network is forbidden, and no token to a hub it is not of, redirected or not."""
    url = str(request.url)
    if reason := offline_reason():
        parts = urlsplit(url)
        raise offline(reason, Asked(Endpoint(parts.netloc, f"{parts.scheme}://{parts.netloc}")))
    header = request.headers.get("authorization")
    if header and origin_of(url) not in _trusted.get(header, ()):
        del request.headers["authorization"]


def _certificates() -> ssl.SSLContext | None:
    """The authorities of REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE, which the client itself does not read."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return None
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if path := os.environ.get(name):
            folder = os.path.isdir(path)
            try:
                return ssl.create_default_context(capath=path if folder else None, cafile=None if folder else path)
            except (OSError, ssl.SSLError) as error:
                found = f"holds no certificates that can be read: {error.strerror or error}"
                raise HfbenchError(found, where=f"{name}={path}", remedy="name a PEM file") from None
    return None
