"""A stand-in for a hub, for what no honest hub does: it answers as a test tells it, and keeps what it was asked."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34


@dataclass
class Request:
    """What was asked."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass
class StandIn:
    """`files` are served as `org/model`; an entry of `answers` is called in place of an answer to its path."""

    files: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """What it says of the sizes of files, where that is a lie."""
    asked: list[Request] = field(default_factory=list)
    certificate: tuple[Path, Path] | None = None
    """PEM files of a certificate and its key; with them it speaks https."""
    url: str = ""

    def paths(self) -> list[str]:
        """The paths that were asked for, without queries."""
        return [urlsplit(each.path).path for each in self.asked]

    def tree(self) -> list[dict[str, Any]]:
        told = []
        for path, content in self.files.items():
            oid = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
            told.append({"type": "file", "path": path, "size": self.sizes.get(path, len(content)), "oid": oid})
        return told


@contextmanager
def stand_in(**given: Any) -> Iterator[StandIn]:
    """A stand-in that runs as long as the block."""
    hub = StandIn(**given)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.asked.append(Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            path = unquote(urlsplit(self.path).path)
            try:
                if path in hub.answers:
                    hub.answers[path](self)
                else:
                    answer(self, hub, path)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if hub.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*hub.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    hub.url = f"http{'s' if hub.certificate else ''}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def answer(at: BaseHTTPRequestHandler, hub: StandIn, path: str) -> None:
    """As an honest hub does."""
    if path == "/api/models/org/model/revision/main":
        send_json(at, {"id": "org/model", "sha": COMMIT, "private": False})
    elif path == f"/api/models/org/model/tree/{COMMIT}":
        send_json(at, hub.tree())
    elif path == "/api/models/org/model/refs":
        send_json(at, {"branches": [{"name": "main", "targetCommit": COMMIT}], "tags": [], "converts": []})
    elif (name := path.removeprefix(f"/org/model/resolve/{COMMIT}/")) in hub.files:
        send_file(at, hub.files[name])
    else:
        send(at, 404, b"{}", {"X-Error-Code": "EntryNotFound", "Content-Type": "application/json"})


def send(at: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    at.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        at.send_header(name, value)
    at.end_headers()
    at.wfile.write(body)


def send_json(at: BaseHTTPRequestHandler, data: Any, headers: dict[str, str] | None = None) -> None:
    send(at, 200, json.dumps(data).encode(), {"Content-Type": "application/json", **(headers or {})})


def send_file(at: BaseHTTPRequestHandler, content: bytes) -> None:
    """The whole, or the range that was asked for."""
    wanted = at.headers.get("Range", "")
    if not wanted:
        send(at, 200, content, {"X-Repo-Commit": COMMIT})
        return
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    begin, end = int(first), min(int(last or len(content) - 1), len(content) - 1)
    headers = {"X-Repo-Commit": COMMIT, "Content-Range": f"bytes {begin}-{end}/{len(content)}"}
    send(at, 206, content[begin : end + 1], headers)


def redirect(to: str, status: int = 302) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda at: send(at, status, b"", {"Location": to})
