"""Asking a hub: every refusal is a sentence with what to do, and a token reaches its own hub alone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hub_lab import Lab, client_of, stock
from stand_in_hub import COMMIT, StandIn, redirect, send, send_json, stand_in

from hfbench.errors import HfbenchError
from hfbench.hub import client as client_module
from hfbench.hub import session as session_module
from hfbench.hub.client import HubClient
from hfbench.hub.endpoints import Endpoint, TokenSource
from hfbench.hub.refusals import (
    Busy,
    Gated,
    HubError,
    NoSuchFile,
    NoSuchRevision,
    NotAHub,
    NotVisible,
    Offline,
    Unreachable,
    WrongToken,
)
from hfbench.hub.search import search

INFO = "/api/models/org/model/revision/main"


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a variable that holds a token."""
    monkeypatch.setenv("A_SECRET", "s3cret")
    return "A_SECRET"


# Against a real hub


def test_a_real_hub_tells_its_model_files_and_revisions(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    client = lab.client(monkeypatch, lab.hub.writer)
    info = client.info("team/small")
    assert (info.commit, info.private, info.gated) == (lab.commit, True, "")
    assert client.whoami() == "writer"
    assert client.refs("team/small").branches == {"main": lab.commit}
    there = {each.path: each.size for each in client.files("team/small", info.commit)}
    assert there == {each.name: each.stat().st_size for each in lab.model.iterdir()}


def test_part_of_a_file_is_the_part_that_was_asked_for(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    client = lab.client(monkeypatch, lab.hub.writer)
    raw = (lab.model / "config.json").read_bytes()
    with client.read_file("team/small", lab.commit, "config.json", start=10, end=50) as stream:
        assert (stream.start, stream.total, stream.commit) == (10, len(raw), lab.commit)
        assert b"".join(stream.chunks()) == raw[10:50]


def test_private_gated_and_wrong_tokens_are_told_apart(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
from huggingface_hub import HfApi
api = HfApi()
api.create_repo("team/closed", exist_ok=True)
api.upload_file(repo_id="team/closed", path_in_repo="config.json", path_or_fileobj=b"{}")
api.update_repo_settings("team/closed", gated="manual")
print(api.model_info("team/closed").sha)
"""
    commit = stock(lab.url, lab.hub.writer, code).splitlines()[-1]
    nobody, stranger = lab.client(monkeypatch, ""), lab.client(monkeypatch, lab.hub.stranger)
    with pytest.raises(NotVisible, match=r"does not exist, or is private: no token was sent.*set LAB_TOKEN"):
        lab.client(monkeypatch, "").info("team/small")
    monkeypatch.setenv("LAB_TOKEN", lab.hub.stranger)
    with pytest.raises(NotVisible, match="the token in the variable LAB_TOKEN does not show it"):
        stranger.info("team/small")
    with pytest.raises(Gated, match=r"was not let in.*Ask for access at http://.*/team/closed") as caught:
        stranger.read_file("team/closed", commit, "config.json").__enter__()
    assert caught.value.exit == 4
    monkeypatch.setenv("LAB_TOKEN", "")
    with pytest.raises(Gated, match="no token was sent"):
        nobody.read_file("team/closed", commit, "config.json").__enter__()
    with pytest.raises(WrongToken, match="the token in the variable LAB_TOKEN is unknown, expired or revoked"):
        lab.client(monkeypatch, "hfb_wrong").info("team/small")


def test_revisions_and_files_that_are_not_there_are_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    client = lab.client(monkeypatch, lab.hub.writer)
    with pytest.raises(NoSuchRevision, match=r"lab:team/small@nxt: there is no revision 'nxt'. There are main"):
        client.info("team/small", "nxt")
    with pytest.raises(NoSuchFile, match="the revision has no such file"):
        client.read_file("team/small", lab.commit, "nothing.json").__enter__()


def test_what_huggingface_hub_raises_is_the_same_sentence(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    client = lab.client(monkeypatch, "hfb_wrong")
    with pytest.raises(WrongToken, match="unknown, expired or revoked"), client.errors_of("team/small"):
        client.api().model_info("team/small")


# What is on the way


def test_a_closed_port_and_an_unknown_name_are_told_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(
        Unreachable, match=r"cannot be reached: Connection refused.*Is the hub running at http"
    ) as caught:
        HubClient(Endpoint("lab", url)).info("org/model")
    assert caught.value.exit == 4
    with pytest.raises(Unreachable, match="cannot be reached"):
        HubClient(Endpoint("lab", "http://nowhere.invalid")).info("org/model")
    assert time.monotonic() - began < 5


def test_offline_is_refused_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in() as hub:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        with pytest.raises(Offline, match=r"HF_HUB_OFFLINE forbids the network\. Nothing is in the cache here"):
            client_of(hub).info("org/model")
        with pytest.raises(Offline):
            client_of(hub).api()
        assert hub.asked == []


PROXIED = """
import sys
from hfbench.hub.client import HubClient
from hfbench.hub.endpoints import Endpoint
print(HubClient(Endpoint("lab", sys.argv[1])).info("org/model").commit)
"""


def run_alone(url: str, **env: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", PROXIED, url]
    return subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def test_a_proxy_of_the_environment_is_used_and_no_proxy_is_heard() -> None:
    def proxy(at: BaseHTTPRequestHandler) -> None:
        send_json(at, {"id": "org/model", "sha": COMMIT})

    with stand_in() as way:
        way.answers[INFO] = proxy
        done = run_alone("http://far.invalid", http_proxy=way.url)
        assert done.stdout.strip() == COMMIT, done.stderr
        assert way.asked[0].path.startswith("http://far.invalid/") or way.asked[0].headers["host"] == "far.invalid"
        asked = len(way.asked)
        done = run_alone("http://far.invalid", http_proxy=way.url, no_proxy="far.invalid")
        assert "cannot be reached" in done.stderr
        assert len(way.asked) == asked


def test_a_proxy_that_is_not_there_is_named_without_its_password() -> None:
    done = run_alone("http://far.invalid", http_proxy="http://me:pass@127.0.0.1:9")
    assert "through the proxy http://127.0.0.1:9" in done.stderr
    assert "http_proxy names it" in done.stderr
    assert "me:pass" not in done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that nobody signed, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=lab -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        [*words.split(), "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True
    )
    return folder / "cert.pem", folder / "key.pem"


def test_an_unknown_certificate_is_refused_and_accepted_by_each_variable(certificate: tuple[Path, Path]) -> None:
    with stand_in(certificate=certificate) as hub:
        done = run_alone(hub.url)
        assert "its certificate is not accepted" in done.stderr
        assert "SSL_CERT_FILE" in done.stderr
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            done = run_alone(hub.url, **{name: str(certificate[0])})
            assert done.stdout.strip() == COMMIT, done.stderr


# Servers that are no hub, or a hostile one


def refusal(hub: StandIn, kind: type[HfbenchError], match: str) -> None:
    with pytest.raises(kind, match=match):
        client_of(hub).info("org/model")


@pytest.mark.parametrize(
    ("answer", "kind", "sentence"),
    [
        (lambda at: send(at, 404, b"<html>"), NotAHub, "is not a hub: it answers 404.*Look at the address of lab"),
        (lambda at: send(at, 200, b"<html>hello"), NotAHub, "where JSON belongs it sends something else"),
        (lambda at: send(at, 200, b"[" * 100_000), NotAHub, "where JSON belongs"),
        (lambda at: send_json(at, {"id": "org/model"}), NotAHub, "it names no commit"),
        (lambda at: send_json(at, {"sha": "../" * 13 + "x"}), NotAHub, "it names no commit"),
        (redirect(INFO), NotAHub, "redirects without end"),
        (redirect("ftp://x/y"), NotAHub, "redirects to ftp://x"),
        (lambda at: send(at, 429, b"", {"Retry-After": "60"}), Busy, "too many requests. Try again in 60 s"),
        (lambda at: send(at, 407, b""), Unreachable, "the proxy wants a name"),
        (
            lambda at: send(at, 418, b'{"error": "no \\u001b[31mtea"}', {"Content-Type": "application/json"}),
            HubError,
            r"answers 418: no \\x1b\[31mtea",
        ),
    ],
)
def test_what_is_no_hub_is_told(answer: object, kind: type[HfbenchError], sentence: str) -> None:
    with stand_in() as hub:
        hub.answers[INFO] = answer  # type: ignore[assignment]
        refusal(hub, kind, sentence)


def test_a_fault_that_passes_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "WAITS", (0.01, 0.01))
    with stand_in() as hub:

        def twice(at: BaseHTTPRequestHandler) -> None:
            broken = len(hub.asked) < 3
            send(at, 503, b"") if broken else send_json(at, {"sha": COMMIT})

        hub.answers[INFO] = twice
        assert client_of(hub).info("org/model").commit == COMMIT
        assert len(hub.asked) == 3


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LARGEST_ANSWER", 1 << 20)

    def endless(at: BaseHTTPRequestHandler) -> None:
        at.send_response(200)
        at.end_headers()
        while True:
            at.wfile.write(b" " * 65536)

    with stand_in() as hub:
        hub.answers[INFO] = endless
        refusal(hub, NotAHub, "larger than 1 MiB")


def test_headers_that_drip_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "ANSWER_TIME", 0.5)

    def drip(at: BaseHTTPRequestHandler) -> None:
        at.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        for _ in range(100):
            at.wfile.write(b"x")
            at.wfile.flush()
            time.sleep(0.1)

    with stand_in() as hub:
        hub.answers[INFO] = drip
        began = time.monotonic()
        refusal(hub, Unreachable, "no whole answer in 0.5 s")
        assert time.monotonic() - began < 3


def test_the_api_is_not_followed_to_another_host_and_the_token_stays(secret: str) -> None:
    with stand_in() as thief, stand_in() as hub:
        hub.answers[INFO] = redirect(f"{thief.url}/steal", 308)
        with pytest.raises(NotAHub, match="redirects to another host"):
            client_of(hub, secret).info("org/model")
        assert hub.asked[0].headers["authorization"] == "Bearer s3cret"
        assert thief.asked == []


def test_a_file_is_followed_to_another_host_without_the_token(secret: str) -> None:
    with stand_in() as store, stand_in() as hub:
        store.answers["/bytes"] = lambda at: send(at, 200, b"content")
        hub.answers[f"/org/model/resolve/{COMMIT}/x"] = redirect(f"{store.url}/bytes")
        with client_of(hub, secret).read_file("org/model", COMMIT, "x") as stream:
            assert b"".join(stream.chunks()) == b"content"
        assert "authorization" in hub.asked[0].headers
        assert "authorization" not in store.asked[0].headers


def test_huggingface_hub_itself_cannot_send_a_token_to_another_hub(secret: str) -> None:
    with stand_in() as thief, stand_in() as hub:
        lead = {"Link": f'<{thief.url}/api/models?cursor=x>; rel="next"'}
        hub.answers["/api/models"] = lambda at: send_json(at, [{"id": "org/model"}], lead)
        thief.answers["/api/models"] = lambda at: send_json(at, [])
        assert len(list(client_of(hub, secret).api().list_models())) == 1
        assert hub.asked[0].headers["authorization"] == "Bearer s3cret"
        assert "authorization" not in thief.asked[0].headers


def test_a_hub_without_a_token_gets_none_even_where_hf_token_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_hub")
    with stand_in() as hub:
        hub.answers["/api/models"] = lambda at: send_json(at, [])
        client_of(hub).info("org/model")
        list(client_of(hub).api().list_models())
        assert len(hub.asked) == 2
        assert all("authorization" not in each.headers for each in hub.asked)


def paged(hub: StandIn, link: str) -> str:
    """Let the hub list two files, the second on a page that the link leads to; the path of the list."""
    tree = f"/api/models/org/model/tree/{COMMIT}"

    def answer(at: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(at.path).query)
        oid = "a" * 40
        told = {"type": "file", "path": f"{query.get('cursor', ['first'])[0]}.txt", "size": 1, "oid": oid}
        send_json(at, [told], {} if "cursor" in query else {"Link": link})

    hub.answers[tree] = answer
    return tree


@pytest.mark.parametrize("rel", ['rel="next"', "rel=next", 'Rel="prev next"'])
def test_a_list_goes_on_here_where_its_hub_calls_itself_otherwise(rel: str) -> None:
    with stand_in() as thief, stand_in() as hub:
        paged(hub, f"<{thief.url}/api/models/org/model/tree/{COMMIT}?recursive=true&cursor=second>; {rel}")
        found = client_of(hub).files("org/model", COMMIT)
        assert [each.path for each in found] == ["first.txt", "second.txt"]
        assert thief.asked == []


def test_a_list_goes_on_here_where_a_proxy_adds_to_the_path() -> None:
    with stand_in() as hub:
        link = f'<http://inside:8080/api/models/org/model/tree/{COMMIT}?cursor=second>; rel="next"'
        tree = paged(hub, link)
        hub.answers["/hub" + tree] = hub.answers.pop(tree)
        client = HubClient(Endpoint("lab", f"{hub.url}/hub"))
        assert [each.path for each in client.files("org/model", COMMIT)] == ["first.txt", "second.txt"]


@pytest.mark.parametrize("there", ["http://{thief}/steal?cursor=second", "file:///etc/passwd", "ftp://x/y"])
def test_a_next_page_somewhere_else_is_told_and_the_list_not_cut_short(there: str) -> None:
    with stand_in() as thief, stand_in() as hub:
        link = there.format(thief=thief.url.removeprefix("http://"))
        paged(hub, f'<{link}>; rel="next"')
        hub.answers["/api/models"] = lambda at: send_json(at, [{"id": "org/m"}], {"Link": f'<{link}>; rel="next"'})
        for work in (lambda: client_of(hub).files("org/model", COMMIT), lambda: search(client_of(hub))):
            with pytest.raises(NotAHub, match="the next page of a list lies on another host"):
                work()
        assert thief.asked == []


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../../x", "a\0b", "a\\b", "x" * 300, "a//b", ".hfbench-remote.json"]
)
def test_a_path_that_leads_out_of_the_folder_is_refused(path: str) -> None:
    with stand_in(files={path: b"x"}) as hub, pytest.raises(NotAHub, match="is not the path of a file in a model"):
        client_of(hub).files("org/model", COMMIT)


@pytest.mark.parametrize("size", [-1, 1 << 60, True, "7", None])
def test_a_size_that_no_file_has_is_refused(size: object) -> None:
    with stand_in(files={"x": b"x"}, sizes={"x": size}) as hub, pytest.raises(NotAHub, match="is said to have a size"):
        client_of(hub).files("org/model", COMMIT)


@pytest.mark.parametrize("range", ["bytes 0-9/100", "bytes 5-99/100", "", "bytes x", "bytes 5-2/100"])
def test_another_part_than_was_asked_for_is_refused(range: str) -> None:
    headers = {"Content-Range": range} if range else {}
    with stand_in() as hub:
        hub.answers[f"/org/model/resolve/{COMMIT}/x"] = lambda at: send(at, 206, b"x" * 10, headers)
        with pytest.raises(HubError, match=r"asked for bytes=5-14, and the hub sends"):
            client_of(hub).read_file("org/model", COMMIT, "x", start=5, end=15).__enter__()


def test_a_file_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from hfbench.hub import files

    monkeypatch.setattr(files, "WINDOW", 0.3)

    def drip(at: BaseHTTPRequestHandler) -> None:
        at.send_response(200)
        at.send_header("Content-Length", "1000")
        at.end_headers()
        for _ in range(1000):
            at.wfile.write(b"x")
            time.sleep(0.05)

    with stand_in() as hub:
        hub.answers[f"/org/model/resolve/{COMMIT}/x"] = drip
        with (
            client_of(hub).read_file("org/model", COMMIT, "x") as stream,
            pytest.raises(Unreachable, match="sends less than 4 KiB"),
        ):
            list(stream.chunks())


def test_a_warning_of_the_hub_is_passed_on_once() -> None:
    heard: list[str] = []
    with stand_in() as hub:
        hub.answers[INFO] = lambda at: send_json(at, {"sha": COMMIT}, {"X-HF-Warning": "quota; nearly full"})
        client = HubClient(Endpoint("lab", hub.url), warn=heard.append)
        client.info("org/model")
        client.info("org/model")
    assert heard == ["lab says: nearly full"]


def test_a_repository_that_was_renamed_is_followed_on_its_own_hub(secret: str) -> None:
    with stand_in() as hub:
        hub.answers["/api/models/old/name/revision/main"] = redirect(f"{INFO}", 307)
        assert client_of(hub, secret).info("old/name").commit == COMMIT
        assert hub.asked[1].headers["authorization"] == "Bearer s3cret"


def test_a_token_is_trusted_with_its_own_hub_alone() -> None:
    header = session_module.trust(Endpoint("lab", "http://lab.example:80", TokenSource()), "t")
    assert session_module._trusted[header] == {("http", "lab.example", 80), ("https", "lab.example", 443)}
