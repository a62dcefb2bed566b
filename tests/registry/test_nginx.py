"""A real nginx before the hub, configured by the very lines of the documentation: it sends the files, we decide."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from hub_process import HubProcess, free_port, make_hub
from test_commits import file, lines
from test_serving import self_signed

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
DOCUMENT = Path(__file__).parents[2] / "docs" / "registry.md"
CONTENT = random.Random(3).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
ADDRESS = "/team/fronted/resolve/main/w.bin"

pytestmark = pytest.mark.skipif(NGINX is None, reason="there is no nginx on this machine")


@dataclass
class Front:
    """nginx and the hub behind it."""

    hub: HubProcess
    url: str
    certificate: Path
    folder: Path

    def client(self, token: str = "") -> httpx2.Client:
        trusted = ssl.create_default_context(cafile=self.certificate)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.Client(base_url=self.url, verify=trusted, headers=headers, timeout=30)

    @property
    def log(self) -> str:
        """What nginx complained about."""
        return (self.folder / "error.log").read_text()


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Both running, with a model of one file."""
    folder = tmp_path_factory.mktemp("nginx")
    certificate, key = self_signed(folder)
    url = f"https://127.0.0.1:{free_port()}"
    hub = make_hub(folder, public_url=url, accel_prefix="/_files")
    hub.start(f"http://127.0.0.1:{hub.settings.port}")
    (folder / "nginx.conf").write_text(configuration(folder, hub, url, certificate, key))
    nginx = subprocess.Popen([str(NGINX), "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"])
    running = Front(hub, url, certificate, folder)
    try:
        until_it_answers(running, nginx)
        put_model(running)
        yield running
    finally:
        nginx.send_signal(signal.SIGTERM)
        nginx.wait(30)
        hub.stop()


def configuration(folder: Path, hub: HubProcess, url: str, certificate: Path, key: Path) -> str:
    """The site as it is documented, on our paths and ports, within the least that nginx wants around it."""
    site = DOCUMENT.read_text().partition("```nginx\n")[2].partition("```")[0]
    ours = {
        "127.0.0.1:8080": f"127.0.0.1:{hub.settings.port}",
        "listen 443 ssl": f"listen {url.removeprefix('https://')} ssl",
        "/etc/ssl/hub.pem": str(certificate),
        "/etc/ssl/hub.key": str(key),
        "/srv/hub/": f"{hub.settings.folder}/",
    }
    for documented, here in ours.items():
        assert site.count(documented) == 1, documented
        site = site.replace(documented, here)
    owner = "user root;" if os.geteuid() == 0 else ""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    drafts = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    around = f"{owner} daemon off; pid {folder}/nginx.pid; events {{}} http {{ access_log off; {drafts}\n"
    return f"{around}{site}}}\n"


def until_it_answers(front: Front, nginx: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert nginx.poll() is None, front.log
        try:
            with front.client() as client:
                assert client.get("/health").status_code == 200
            return
        except httpx2.TransportError:
            time.sleep(0.05)
    raise AssertionError(front.log)


def put_model(front: Front) -> None:
    with front.client(front.hub.writer) as client:
        asked = {"name": "fronted", "organization": "team", "private": True}
        assert client.post("/api/repos/create", json=asked).status_code == 200
        body = lines(file("w.bin", CONTENT), file("small.txt", b"small"))
        assert client.post("/api/models/team/fronted/commit/main", content=body).status_code == 200


@pytest.mark.parametrize(
    ("header", "status", "start", "end"),
    [
        ("", 200, 0, 300_000),
        ("bytes=5-9", 206, 5, 10),
        ("bytes=299990-", 206, 299_990, 300_000),
        ("bytes=-5", 206, 299_995, 300_000),
        ("bytes=0-1,5-6", 200, 0, 300_000),
        ("bytes=300000-", 416, 0, 0),
    ],
)
def test_nginx_sends_the_file_or_the_part_of_it(front: Front, header: str, status: int, start: int, end: int) -> None:
    with front.client(front.hub.reader) as client:
        answer = client.get(ADDRESS, headers={"range": header} if header else {})
    assert answer.status_code == status
    assert answer.headers["server"].startswith("nginx")
    if status == 416:
        assert answer.headers["content-range"] == "bytes */300000"
        return
    assert answer.content == CONTENT[start:end]
    assert (answer.headers.get("content-range") is not None) == (status == 206)


def test_the_bytes_do_not_come_from_the_hub(front: Front) -> None:
    blob = front.hub.settings.layout.blob(SHA256)
    with front.client(front.hub.reader) as client:
        assert client.get(ADDRESS).content == CONTENT
        direct = httpx2.get(
            f"http://127.0.0.1:{front.hub.settings.port}{ADDRESS}", headers=dict(client.headers), timeout=30
        )
    assert direct.content == b""
    assert direct.headers["x-accel-redirect"] == f"/_files/{blob.relative_to(front.hub.settings.folder)}"


def test_head_and_get_tell_the_same_of_a_file(front: Front) -> None:
    told = ("etag", "x-repo-commit", "x-linked-size", "content-type", "content-disposition", "content-length")
    told += ("x-content-type-options", "content-security-policy", "accept-ranges")
    with front.client(front.hub.reader) as client:
        head, get = client.head(ADDRESS), client.get(ADDRESS)
    assert {name: head.headers.get(name) for name in told} == {name: get.headers.get(name) for name in told}
    assert "last-modified" not in get.headers
    assert len(get.headers["x-repo-commit"]) == 40


def test_conditions_are_about_the_content(front: Front) -> None:
    with front.client(front.hub.reader) as client:
        etag = client.head(ADDRESS).headers["etag"]
        assert client.get(ADDRESS, headers={"if-none-match": etag}).status_code == 304
        assert client.get(ADDRESS, headers={"if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT"}).status_code == 200
        same = client.get(ADDRESS, headers={"range": "bytes=0-4", "if-range": etag})
        other = client.get(ADDRESS, headers={"range": "bytes=0-4", "if-range": '"other"'})
    assert (same.status_code, same.content) == (206, CONTENT[:5])
    assert (other.status_code, other.content) == (200, CONTENT)


@pytest.mark.parametrize("path", ["registry.db", "secret.key", f"blobs/{SHA256[:2]}/{SHA256}", "../nginx.conf"])
def test_the_folder_of_the_hub_cannot_be_reached_from_outside(front: Front, path: str) -> None:
    with front.client(front.hub.admin) as client:
        for way in (f"/_files/{path}", f"/_files/{path.replace('/', '%2f')}", f"//_files/{path}"):
            assert client.get(way).status_code in (400, 404)


def test_who_may_not_read_gets_nothing(front: Front) -> None:
    with front.client(front.hub.stranger) as client:
        answer = client.get(ADDRESS)
    assert (answer.status_code, answer.headers["x-error-code"]) == (404, "RepoNotFound")


def test_stock_clients_push_and_pull_through_it(front: Front, tmp_path: Path) -> None:
    content = random.Random(4).randbytes(1 << 20)
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "model.bin").write_bytes(content)
    env = {
        **os.environ,
        "HF_ENDPOINT": front.url,
        "HF_TOKEN": front.hub.writer,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_OFFLINE": "0",
        "SSL_CERT_FILE": str(front.certificate),
    }
    for words in (
        ["upload", "team/stock", "up", "--quiet"],
        ["download", "team/stock", "--local-dir", "down", "--quiet"],
    ):
        command = [str(Path(sys.executable).with_name("hf")), *words]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr + front.log
    assert (tmp_path / "down" / "model.bin").read_bytes() == content
