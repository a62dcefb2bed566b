"""Clients that hardly send or hardly read, two hundred at a time: nobody else notices, and the memory stays bounded."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx2
import pytest
from hub_inside import REPO
from hub_measures import memory, read_bytes
from hub_process import HubProcess
from test_access import batch, upload
from test_commits import commit, file, lines

from hfbench.registry.serve import STOPPED_WITHIN

MANY = 200
SLOW_SECONDS = 2
"""What the hub of these tests calls slow; usually it is thirty."""


@contextmanager
def open_sockets(hub: HubProcess, count: int, beginning: bytes) -> Iterator[list[socket.socket]]:
    """Connections on which a request has begun."""
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(stack.enter_context(socket.create_connection((hub.settings.host, hub.settings.port))))
            made[-1].sendall(beginning)
        yield made


def seconds_of(hub: HubProcess) -> float:
    """How long a usual request takes."""
    begun = time.monotonic()
    with hub.client(hub.writer) as client:
        assert client.get(f"/api/models/{REPO}").status_code == 200
    assert commit(hub, REPO, lines(file(f"t{time.monotonic_ns()}"))).status_code == 200
    return time.monotonic() - begun


def ended(sockets: list[socket.socket], within: float) -> list[bytes]:
    """What each connection was told when the server ended it."""
    deadline, answers = time.monotonic() + within, []
    for each in sockets:
        each.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            answers.append(each.recv(4096))
        except ConnectionResetError:
            answers.append(b"")
    return answers


@pytest.fixture(scope="module")
def link(served: HubProcess) -> str:
    """A link for an upload of 50 MB."""
    told = batch(served, REPO, "3" * 64, 50_000_000, served.writer)
    return str(told["actions"]["upload"]["href"]).removeprefix(served.url)  # type: ignore[index]


def beginnings(link: str) -> dict[str, bytes]:
    return {
        "nothing": b"",
        "head": b"GET /api/models HTTP/1.1\r\nhost: hub\r\nx-slow: ",
        "upload": f"PUT {link} HTTP/1.1\r\nhost: hub\r\ncontent-length: 50000000\r\n\r\nx".encode(),
        "json": b"POST /api/repos/create HTTP/1.1\r\nhost: hub\r\ncontent-length: 9000000\r\n\r\n{",
    }


@pytest.mark.parametrize("kind", ["nothing", "head", "upload", "json"])
def test_who_hardly_sends_is_sent_away_and_nobody_else_waits(served: HubProcess, link: str, kind: str) -> None:
    usual, before = seconds_of(served), memory(served)
    with open_sockets(served, MANY, beginnings(link)[kind]) as sockets:
        during = []
        for _ in range(SLOW_SECONDS + 2):  # a byte a second each
            during.append(seconds_of(served))
            for each in sockets if kind != "nothing" else []:
                try:
                    each.send(b"x")
                except (BrokenPipeError, ConnectionResetError):
                    continue
            time.sleep(1 - min(1, during[-1]))
        grown = memory(served) - before
        answers = ended(sockets, within=15)
    assert max(during) < usual + 2
    assert grown < MANY * 400_000
    if kind in ("upload", "json"):
        assert all(b" 408 " in answer for answer in answers if answer)
    assert not list(served.settings.layout.drafts.iterdir())
    assert seconds_of(served) < usual + 2


def test_nobody_makes_the_hub_gather_much_without_saying_who_it_is(served: HubProcess) -> None:
    with served.client() as client:
        address = "/api/repos/create"
        answer = client.post(address, content=b'{"name": "' + b"x" * (1 << 20) + b'"}')
    assert answer.status_code == 413


def test_who_hardly_reads_costs_no_memory(served: HubProcess) -> None:
    content = bytes(24 << 20)
    upload(served, REPO, content)
    step = ("lfsFile", {"path": "z.bin", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()})
    assert commit(served, REPO, lines(step)).status_code == 200
    usual, before = seconds_of(served), memory(served)
    for header in ("", "range: bytes=1-\r\n"):
        asked = f"GET /{REPO}/resolve/main/z.bin HTTP/1.1\r\nhost: hub\r\n{header}\r\n".encode()
        with open_sockets(served, MANY // 2, asked) as sockets:
            for each in sockets:
                each.settimeout(20)
                assert each.recv(1).startswith(b"H")
            assert seconds_of(served) < usual + 2
            assert memory(served) - before < (MANY // 2) * 4_500_000, header
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and seconds_of(served) > usual + 2:
        time.sleep(0.1)


def test_nobody_is_read_for_who_has_left(served: HubProcess) -> None:
    content = bytes(64 << 20)
    upload(served, REPO, content)
    step = ("lfsFile", {"path": "left.bin", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()})
    assert commit(served, REPO, lines(step)).status_code == 200
    before = read_bytes(served)
    asked = f"GET /{REPO}/resolve/main/left.bin HTTP/1.1\r\nhost: hub\r\nrange: bytes=1-\r\n\r\n".encode()
    with open_sockets(served, 5, asked) as sockets:
        for each in sockets:
            assert each.recv(1)
    time.sleep(1)
    assert read_bytes(served) - before < 5 * (16 << 20)


def test_fifty_at_once_are_all_served(served: HubProcess) -> None:
    content = b"many" * 50_000
    assert commit(served, REPO, lines(file("many.txt", content))).status_code == 200
    work: list[Callable[[httpx2.Client], bool]] = [
        lambda client: client.get(f"/{REPO}/resolve/main/many.txt").content == content,
        lambda client: client.get(f"/api/models/{REPO}/tree/main").status_code == 200,
        lambda client: client.get(f"/{REPO}/resolve/main/many.txt", headers={"range": "bytes=4-7"}).content == b"many",
    ]

    def one(number: int) -> bool:
        with served.client(served.writer) as client:
            return all(each(client) for each in work) and (
                commit(served, REPO, lines(file(f"at-once/{number}"))).status_code == 200
            )

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(one, range(50)))
    with served.client() as client:
        assert len(client.get(f"/api/models/{REPO}/tree/main/at-once").json()) == 50


@pytest.mark.slow
def test_a_server_that_is_stopped_does_not_wait_for_who_hardly_reads(served: HubProcess) -> None:
    content = b"stop" * (6 << 20)
    upload(served, REPO, content)
    step = ("lfsFile", {"path": "stop.bin", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()})
    assert commit(served, REPO, lines(step)).status_code == 200
    asked = f"GET /{REPO}/resolve/main/stop.bin HTTP/1.1\r\nhost: hub\r\nrange: bytes=1-\r\n\r\n".encode()
    begun = time.monotonic()
    with open_sockets(served, 3, asked) as sockets:
        for each in sockets:
            assert each.recv(1)
        served.stop()
    assert time.monotonic() - begun < STOPPED_WITHIN + 5
    served.start()
