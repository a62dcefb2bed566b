"""What others may not see, open or do: on every route, and by every hash."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable

import pytest
from hub_process import HubProcess
from test_commits import commit, file, lines

from hfbench.registry.administration import create_token, list_tokens, revoke_token
from hfbench.registry.app import router
from hfbench.registry.routing import KINDS

NewRepo = Callable[..., str]
SECRET = os.urandom(200_000)
SHA = hashlib.sha256(SECRET).hexdigest()
UNBOUND = {
    "/health", "/metrics", "/api/whoami-v2", "/api/repos/create", "/api/repos/delete", "/api/repos/move",
    "/api/models", "/api/datasets", "/api/validate-yaml", "/api/{kind}/{name}", "/api/settings/repositories",
    "/api/organizations/{organization}/settings/repositories",
    "/{namespace}/{name}/info/refs", "/{kind}/{namespace}/{name}/info/refs",
}  # fmt: skip
"""Routes that name no repository in their path, tested on their own or harmless."""
BODIES = {
    "/ask-access": b"{}",
    "/commit/": lines(file("x")),
    "/lfs/objects/verify": json.dumps({"oid": SHA, "size": 1}).encode(),
    "/lfs/objects/batch": b'{"operation": "upload", "objects": []}',
    "/preupload/": b'{"files": []}',
    "/tag/": b'{"tag": "t"}',
}
"""What routes need to get as far as the repository."""


@pytest.fixture(scope="module")
def private(sqlite_hub: HubProcess) -> str:
    """A private repository with a file of its own."""
    hub = sqlite_hub
    with hub.client(hub.writer) as client:
        told = {"name": "private", "organization": "team", "visibility": "private"}
        client.post("/api/repos/create", json=told)
        files = lines(file("config.json", b"{}"), file("s.txt", SECRET[:1000].hex().encode()))
        assert commit(hub, "team/private", files).status_code == 200
        upload(hub, "team/private", SECRET)
        step = ("lfsFile", {"path": "s.bin", "algo": "sha256", "oid": SHA})
        assert commit(hub, "team/private", lines(step)).status_code == 200
    return "team/private"


def batch(hub: HubProcess, repo: str, sha256: str, size: int, token: str) -> dict[str, object]:
    told = {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": sha256, "size": size}]}
    with hub.client(token) as client:
        answer = client.post(f"/{repo}.git/info/lfs/objects/batch", json=told)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["objects"][0])


def upload(hub: HubProcess, repo: str, content: bytes) -> None:
    link = batch(hub, repo, hashlib.sha256(content).hexdigest(), len(content), hub.writer)["actions"]["upload"]["href"]  # type: ignore[index]
    with hub.client() as client:
        assert client.put(link, content=content).status_code == 200


ROUTES = [route for route in router.routes if route.pattern not in UNBOUND and not route.pattern.startswith("/_")]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.pattern}")
def test_a_private_repository_looks_absent_on_every_route(sqlite_hub: HubProcess, private: str, route: object) -> None:
    names = {"namespace": "team", "name": "private", "git": "private.git", "kind": "models", "revision": "main"}
    names |= {"branch": "b", "tag": "t", "state": "pending", "path...": "config.json"}
    path = route.pattern  # type: ignore[attr-defined]
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    body = next((body for part, body in BODIES.items() if part in path), b"")
    other = path.replace("private", "absent")
    if path.startswith("/models/"):
        path, other = path.removeprefix("/models"), other.removeprefix("/models")
    for token in (sqlite_hub.stranger, ""):
        with sqlite_hub.client(token) as client:
            told, absent = (client.request(route.method, each, content=body) for each in (path, other))  # type: ignore[attr-defined]
        shape = (told.status_code, told.headers.get("x-error-code"), told.text)
        assert shape == (absent.status_code, absent.headers.get("x-error-code"), absent.text)
        assert told.status_code == (404 if token else 401), told.text


def test_a_private_repository_is_in_no_list(sqlite_hub: HubProcess, private: str) -> None:
    for token, seen in ((sqlite_hub.stranger, False), ("", False), (sqlite_hub.reader, True)):
        with sqlite_hub.client(token) as client:
            for query in ("", "?search=private", "?author=team", "?full=true&sort=createdAt"):
                ids = [each["id"] for each in client.get(f"/api/models{query}").json()]
                assert (private in ids) == seen


def test_a_hash_opens_nothing(sqlite_hub: HubProcess, private: str) -> None:
    hub = sqlite_hub
    with hub.client(hub.stranger) as client:
        client.post("/api/repos/create", json={"name": "own"})
    assert "actions" in batch(hub, "stranger/own", SHA, len(SECRET), hub.stranger), "who cannot read it must send it"
    step = ("lfsFile", {"path": "stolen.bin", "algo": "sha256", "oid": SHA})
    answer = commit(hub, "stranger/own", lines(step), hub.stranger)
    assert (answer.status_code, "Not uploaded" in answer.text) == (400, True)
    assert "actions" not in batch(hub, "team/private", SHA, len(SECRET), hub.writer)


@pytest.mark.parametrize("wrong", [b"x" * 1000, b"y" * 999, b"z" * 1001], ids=["other", "short", "long"])
def test_a_body_that_is_not_what_was_announced_is_refused(
    sqlite_hub: HubProcess, new_repo: NewRepo, wrong: bytes
) -> None:
    hub = sqlite_hub
    content = os.urandom(1000)
    sha256 = hashlib.sha256(content).hexdigest()
    repo = new_repo(hub)
    link = batch(hub, repo, sha256, len(content), hub.writer)["actions"]["upload"]["href"]  # type: ignore[index]
    with hub.client() as client:
        assert client.put(link, content=wrong).status_code == 400
        assert client.put(link[:-4] + "AAAA", content=content).status_code == 403
    assert not hub.settings.layout.blob(sha256).exists()
    assert not list(hub.settings.layout.drafts.iterdir())


def test_readers_and_read_tokens_change_nothing(sqlite_hub: HubProcess, private: str) -> None:
    hub = sqlite_hub
    reading = create_token(hub.settings, "writer", name="r", scope="read")
    for token in (hub.reader, reading):
        with hub.client(token) as client:
            assert client.get(f"/{private}/resolve/main/config.json").status_code == 200
            assert commit(hub, private, lines(file("x")), token).status_code == 403
            tries = [
                client.post(f"/api/models/{private}/preupload/main", json={"files": []}),
                client.get(f"/api/models/{private}/xet-write-token/main"),
                client.post(f"/{private}.git/info/lfs/objects/batch", json={"operation": "upload", "objects": []}),
                client.put(f"/api/models/{private}/settings", json={"private": False}),
                client.post(f"/api/models/{private}/branch/b", json={}),
                client.post(f"/api/models/{private}/tag/main", json={"tag": "t"}),
                client.delete(f"/api/models/{private}/branch/b"),
                client.post("/api/repos/create", json={"name": "more", "organization": "team"}),
                client.request("DELETE", "/api/repos/delete", json={"name": "private", "organization": "team"}),
                client.post("/api/repos/move", json={"fromRepo": private, "toRepo": "team/else"}),
            ]
            assert [answer.status_code for answer in tries] == [403] * len(tries)


def test_tokens_end_at_once_and_are_nowhere_in_plain(sqlite_hub: HubProcess, private: str) -> None:
    hub = sqlite_hub
    secret = create_token(hub.settings, "writer", name="short")
    brief = create_token(hub.settings, "writer", name="brief", seconds=0.2)
    with hub.client(secret) as client:
        assert client.get("/api/whoami-v2").json()["name"] == "writer"
        answer = client.get(f"/api/models/{private}/xet-write-token/main")
        derived = answer.headers["x-xet-access-token"]
        revoke_token(hub.settings, next(row.id for row in list_tokens(hub.settings, "writer") if row.name == "short"))
        refused = client.get("/api/whoami-v2")
    assert (refused.status_code, refused.headers["x-error-message"]) == (
        401,
        "Invalid credentials in Authorization header",
    )
    with hub.client(derived) as client:
        assert client.post("/_cas/v1/shards", content=b"").status_code == 401, "what was derived from it ends with it"
    time.sleep(0.2)
    with hub.client(brief) as client:
        assert client.get("/api/whoami-v2").status_code == 401
    kept = b"".join(path.read_bytes() for path in hub.settings.layout.root.glob("registry.db*"))
    log = hub.log.read_bytes()
    for each in (secret, brief, hub.admin, hub.writer, derived):
        assert each.encode() not in kept
        assert each.encode() not in log


def test_a_token_for_one_namespace_sees_nothing_private_elsewhere(sqlite_hub: HubProcess, private: str) -> None:
    hub = sqlite_hub
    token = create_token(hub.settings, "writer", name="own", namespaces=["writer"])
    with hub.client(token) as client:
        assert client.get(f"/api/models/{private}").status_code == 404
        assert private not in [each["id"] for each in client.get("/api/models").json()]
        assert client.post("/api/repos/create", json={"name": "x", "organization": "team"}).status_code == 403
        assert client.post("/api/repos/create", json={"name": "mine"}).status_code == 200


def test_the_storage_of_a_namespace_is_for_its_members(sqlite_hub: HubProcess, private: str) -> None:
    address = "/api/organizations/team/settings/repositories"
    with sqlite_hub.client(sqlite_hub.reader) as client:
        sizes = {each["id"]: each["storage"] for each in client.get(address).json()}
    assert sizes[private] >= len(SECRET)
    with sqlite_hub.client(sqlite_hub.stranger) as client:
        assert client.get(address).status_code == 404
        assert client.get("/api/settings/repositories").status_code == 200


def test_what_is_out_of_scope_says_so(sqlite_hub: HubProcess) -> None:
    with sqlite_hub.client(sqlite_hub.writer) as client:
        answer = client.post("/api/models/team/x/super-squash/main", json={})
        plain = client.get("/api/models/gpt2")
    assert (answer.status_code, answer.headers["x-error-code"]) == (501, "NotImplemented")
    assert (plain.status_code, plain.headers["x-error-code"]) == (404, "RepoNotFound")
    assert set(KINDS) == {"models", "datasets"}
