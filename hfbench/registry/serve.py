"""Runs a hub: sweeps its folder, brings its schema up to date, starts the workers, and ends with them."""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import logging
import os
import resource
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import IO

from hfbench.errors import MissingError, UsageError
from hfbench.registry.database.migrate import migrate
from hfbench.registry.presence import require_hub
from hfbench.registry.settings import Settings
from hfbench.registry.storage.cache import Cache
from hfbench.registry.storage.sweeping import make_folders, sweep

TARGET = "hfbench.registry.app:make_worker"
STOPPED_WITHIN = 10
"""Seconds a worker may finish what it does; then it is killed, which loses nothing that was acknowledged."""
MOST_CONNECTIONS = 4096
"""Of all workers together; more wait until one ends."""
log = logging.getLogger("hfbench.registry")


def serve(settings: Settings, announce: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; `announce` is called once the address is bound.

    UsageError when the address is taken, or when another server has the folder's SQLite database.
    """
    from granian.constants import HTTPModes, Interfaces, Loops
    from granian.http import HTTP1Settings
    from granian.server import Server

    _require_certificate(settings)
    with _lock(settings):
        os.environ.update(settings.passed_on())
        _allow_files(2 * MOST_CONNECTIONS)
        server = Server(
            TARGET,
            factory=True,
            address=settings.host,
            port=settings.port,
            interface=Interfaces.ASGI,
            loop=Loops.asyncio,
            workers=settings.workers,
            websockets=False,
            http=HTTPModes.http1,  # where both are spoken, who says nothing at all is waited for without end
            backlog=MOST_CONNECTIONS,
            http1_settings=HTTP1Settings(header_read_timeout=settings.slow_seconds * 1000),
            respawn_failed_workers=True,
            workers_kill_timeout=STOPPED_WITHIN,
            log_dictconfig=_logging(),
            ssl_cert=_path(settings.tls_certificate),
            ssl_key=_path(settings.tls_key),
        )
        server.on_startup(announce)
        require_free(settings)
        server.serve()


def _allow_files(count: int) -> None:
    """So many open files, or as many as this user may have: a connection is one, and an upload another."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def require_free(settings: Settings) -> None:
    """UsageError when something else listens there, which granian would share the address with, or when there is no
    such address here."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    where = f"{settings.host}:{settings.port}"
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except (socket.gaierror, UnicodeError) as error:
            remedy = "--host is an address of this machine, such as 127.0.0.1 or 0.0.0.0"
            raise UsageError(f"{settings.host!r} is no address", where=where, remedy=remedy) from error
        except OSError as error:
            raise UsageError(
                f"cannot listen: {error.strerror or error}", where=where, remedy=_REMEDIES.get(error.errno or 0, "")
            ) from error


_REMEDIES = {
    errno.EADDRINUSE: "give another --port",
    errno.EACCES: "give a --port above 1023",
    errno.EADDRNOTAVAIL: "--host is an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them",
}


def _require_certificate(settings: Settings) -> None:
    """UsageError when the files for TLS are no certificate and its key."""
    if not settings.tls_certificate:
        return
    for name, path in (("--tls-certificate", settings.tls_certificate), ("--tls-key", settings.tls_key)):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=path, remedy=f"{name} is a PEM file") from error
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            settings.tls_certificate, settings.tls_key, password=lambda: ""
        )
    except (ssl.SSLError, OSError, ValueError) as error:
        raise UsageError(
            "is no certificate with the key that was given",
            where=settings.tls_certificate,
            remedy="both are PEM files, and the key has no password",
        ) from error


def listening(settings: Settings) -> list[str]:
    """What to tell of the address: where clients find the hub, and how to open it where it is closed."""
    lines = [f"listening on {settings.base_url}", f"export HF_ENDPOINT={settings.base_url}"]
    if is_loopback(settings.host) and not settings.public_url:
        lines.append(
            "only this machine can connect; others can with --host 0.0.0.0 and --public-url http://NAME:PORT, better"
            " with --tls-certificate and --tls-key"
        )
    elif not settings.tls_certificate and not settings.public_url.startswith("https://"):
        lines.append(
            "tokens travel unencrypted: give --tls-certificate and --tls-key, or put a proxy with TLS before it"
        )
    return lines


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _lock(settings: Settings) -> IO[bytes]:
    """Held while serving. Whoever gets it alone sweeps; on PostgreSQL further servers share the folder."""
    path = settings.layout.lock
    if not settings.layout.settings.exists() and not settings.layout.secret.exists():
        raise MissingError("there is no hub", where=settings.folder, remedy="hfbench registry init makes one")
    require_hub(settings)
    held = path.open("ab")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if not settings.database:
            held.close()
            raise UsageError("another server runs on this hub", where=settings.folder, remedy="stop it first") from None
        fcntl.flock(held, fcntl.LOCK_SH)
        return held
    make_folders(settings.layout)
    sweep(settings.layout)
    Cache(settings.layout, settings.cache_bytes).distrust()
    migrate(settings.database_url)
    if settings.database:
        fcntl.flock(held, fcntl.LOCK_SH)
    return held


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _logging() -> dict[str, object]:
    """One line a request to stderr: method, pattern of the route, status and time; no names, tokens or queries."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "loggers": {
            "hfbench.registry": {"level": "INFO", "handlers": ["stderr"], "propagate": False},
            "_granian": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
            "granian.access": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        },
    }
