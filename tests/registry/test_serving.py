"""The server process: what it says, whom it refuses, what it finds after its own death, TLS and proxies."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from hub_process import HubProcess, make_hub
from test_access import batch, upload
from test_commits import commit, file, lines

from hfbench.registry.serve import listening
from hfbench.registry.settings import Settings


def hfbench(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hfbench", "registry", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)


def test_a_second_server_on_the_folder_is_refused(sqlite_hub: HubProcess) -> None:
    done = hfbench("serve", "--folder", sqlite_hub.settings.folder, "--port", "1")
    assert (done.returncode, "another server runs on this hub" in done.stderr) == (2, True)


def test_an_address_in_use_is_told(sqlite_hub: HubProcess, tmp_path: Path) -> None:
    done = hfbench("serve", "--folder", str(tmp_path / "other"), "--port", str(sqlite_hub.settings.port))
    assert (done.returncode, "cannot listen" in done.stderr) == (2, True)


def test_users_and_tokens_are_made_from_the_command_line(tmp_path: Path) -> None:
    home = {"HFBENCH_HOME": str(tmp_path)}
    made = hfbench("init", "--admin", "boss", **home)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "registry" / "secret.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "registry").stat().st_mode & 0o777 == 0o700
    assert hfbench("user", "add", "alice", **home).returncode == 0
    token = hfbench("token", "create", "alice", "--scope", "read", "--expires", "12h", **home).stdout.strip()
    listed = hfbench("token", "list", **home).stdout
    assert token.startswith("hfb_")
    assert token not in listed
    assert token[:10] in listed
    assert hfbench("init", **home).returncode == 2
    assert "administrator" in hfbench("user", "list", **home).stdout


def test_a_closed_door_says_how_it_is_opened() -> None:
    closed = listening(Settings(folder="/x"))
    assert closed[:2] == ["listening on http://127.0.0.1:8080", "export HF_ENDPOINT=http://127.0.0.1:8080"]
    assert "--host 0.0.0.0" in closed[2]
    assert "unencrypted" in listening(Settings(folder="/x", host="0.0.0.0"))[2]
    assert len(listening(Settings(folder="/x", public_url="https://hub.lab"))) == 2


def test_a_killed_server_shows_nothing_half_and_leaves_nothing_behind(tmp_path: Path) -> None:
    hub = make_hub(tmp_path)
    hub.start()
    try:
        with hub.client(hub.writer) as client:
            client.post("/api/repos/create", json={"name": "r", "organization": "team"})
        upload(hub, "team/r", b"kept" * 1000)
        content = os.urandom(8 << 20)
        sha256 = hashlib.sha256(content).hexdigest()
        link = batch(hub, "team/r", sha256, len(content), hub.writer)["actions"]["upload"]["href"]  # type: ignore[index]

        def half() -> object:
            yield content[: 6 << 20]
            hub.stop(signal.SIGKILL)
            yield content[6 << 20 :]

        with hub.client() as client, pytest.raises(httpx2.TransportError):
            client.put(link, content=half())  # type: ignore[arg-type]
        assert list(hub.settings.layout.drafts.iterdir()), "the draft of the killed upload"
        hub.start()
        assert not list(hub.settings.layout.drafts.iterdir())
        assert not hub.settings.layout.blob(sha256).exists()
        upload(hub, "team/r", content)
        step = ("lfsFile", {"path": "x.bin", "algo": "sha256", "oid": sha256})
        assert commit(hub, "team/r", lines(step)).status_code == 200
        with hub.client() as client:
            assert client.get("/team/r/resolve/main/x.bin").content == content
    finally:
        hub.stop()


def test_a_hub_behind_tls_and_a_proxy_speaks_of_its_public_address(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    proxied = {"public_url": "https://hub.lab/", "accel_prefix": "/protected/"}
    hub = make_hub(tmp_path, tls_certificate=str(certificate), tls_key=str(key), **proxied)
    address = f"https://127.0.0.1:{hub.settings.port}"
    trusted = ssl.create_default_context(cafile=certificate)
    hub.start(address, verify=trusted)
    try:
        authorized = {"authorization": f"Bearer {hub.writer}"}
        with httpx2.Client(base_url=address, verify=trusted, headers=authorized) as client:
            made = client.post("/api/repos/create", json={"name": "r", "organization": "team"})
            assert made.json()["url"] == "https://hub.lab/team/r"
            token = client.get("/api/models/team/r/xet-write-token/main")
            assert token.headers["x-xet-cas-url"].startswith("https://hub.lab/_cas/")
            large = file("x.txt", b"large" * 20_000)
            assert client.post("/api/models/team/r/commit/main", content=lines(large)).status_code == 200
            answer = client.get("/team/r/resolve/main/x.txt", headers={"range": "bytes=5-9"})
            sha256 = hashlib.sha256(b"large" * 20_000).hexdigest()
            assert answer.headers["x-accel-redirect"] == f"/protected/blobs/{sha256[:2]}/{sha256}"
            assert answer.headers["x-repo-commit"] == client.get("/api/models/team/r").json()["sha"]
            assert answer.content == b"", "the proxy sends the bytes"
    finally:
        hub.stop()


def self_signed(folder: Path) -> tuple[Path, Path]:
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hub")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"
