"""Paths that would leave their place, on the way in and on the way out, spelled in every way."""

from __future__ import annotations

import json
from urllib.parse import quote

import httpx2
import pytest
from hub_inside import REPO, raw_answer
from hub_process import HubProcess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_commits import file, lines

from hfbench.registry.hub import Hub
from hfbench.registry.names import path_trouble

Inside = tuple[Hub, httpx2.AsyncClient]
BAD = {
    "parent": "../x",
    "parent within": "a/../../x",
    "dot": "./x",
    "absolute": "/etc/passwd",
    "empty part": "a//b",
    "git": ".git/config",
    "git in capitals": "a/.GIT/hooks/post-update",
    "git with a dot, as Windows reads it": ".git./config",
    "git with a blank": ".git /config",
    "NUL": "a\0b",
    "newline": "a\nb",
    "backslash": "..\\x",
    "long name": "x" * 256,
    "long name in bytes": "ü" * 128,
    "long path": "/".join(["x" * 200] * 21),
    "surrogate": "\ud800",
    "empty": "",
}
STEPS = ("file", "lfsFile", "deletedFile", "deletedFolder")


def step(key: str, path: str) -> tuple[str, dict[str, object]]:
    value: dict[str, object] = {"path": path}
    more: dict[str, dict[str, object]] = {"file": file("")[1], "lfsFile": {"algo": "sha256", "oid": "0" * 64}}
    return key, {**more.get(key, {}), **value}


@pytest.mark.parametrize("path", BAD.values(), ids=BAD)
async def test_no_step_of_a_commit_takes_such_a_path(inside: Inside, path: str) -> None:
    _, client = inside
    for key in STEPS:
        answer = await client.post(f"/api/models/{REPO}/commit/main", content=lines(step(key, path)))
        assert answer.status_code == 400, (key, answer.text)
        assert "path" in answer.json()["error"]
    asked = json.dumps({"files": [{"path": path, "size": 1, "sample": ""}]}).encode()
    assert (await client.post(f"/api/models/{REPO}/preupload/main", content=asked)).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "../../../registry.toml",
        "..%2f..%2f..%2fregistry.toml",
        "%2e%2e%2f%2e%2e%2fsecret.key",
        "..%252f..%252fsecret.key",
        "%2fetc%2fpasswd",
        "..%5c..%5csecret.key",
        "%00",
        "a%00.txt",
        ".git/config",
        "%c0%ae%c0%ae/secret.key",
        "x" * 300,
    ],
)
async def test_no_address_leads_out(resting: HubProcess, inside: Inside, path: str) -> None:
    hub, client = inside
    api = f"/api/models/{REPO}"
    for place in (f"/{REPO}/resolve/main", f"/{REPO}/raw/main", f"{api}/tree/main", f"{api}/safetensors-metadata"):
        address = f"{place}/{path}"
        status, body = await raw_answer(hub, "GET", address.encode(), token=resting.writer)
        assert status in (404, 501), address
        assert b"link_seconds" not in body
    told = await client.post(f"/api/models/{REPO}/paths-info/main", data={"paths": [path]})
    assert (told.status_code, told.json()) == (200, [])


async def test_names_that_differ_in_their_case_are_one(inside: Inside) -> None:
    _, client = inside
    assert (await client.post(f"/api/models/{REPO}/commit/main", content=lines(file("Case/x")))).status_code == 200
    for path in ("case", "case/y", "Case/X", "CASE/x"):
        answer = await client.post(f"/api/models/{REPO}/commit/main", content=lines(file(path)))
        assert (answer.status_code, "differ only in their case" in answer.text) == (400, True), path
    again = await client.post("/api/repos/create", json={"name": "DEEDS", "organization": "Team"})
    assert again.status_code == 409
    assert (await client.get(f"/{REPO.upper()}/resolve/main/Case/x")).content == b"x"


@pytest.mark.parametrize("name", ["..", ".git", "a/../b", "a\0b", "a b", "x" * 200, "api", "-x", "a--b", "x.git", "ü"])
async def test_no_repository_and_no_branch_has_such_a_name(resting: HubProcess, inside: Inside, name: str) -> None:
    hub, client = inside
    made = await client.post("/api/repos/create", json={"name": name, "organization": "team"})
    moved = await client.post("/api/repos/move", json={"fromRepo": REPO, "toRepo": f"team/{name}"})
    assert (made.status_code, moved.status_code) == (400, 400)
    if name not in ("api", "x.git", "ü", "a--b", "x" * 200):
        address = f"/api/models/{REPO}/branch/{quote(name, safe='')}".encode()
        assert (await raw_answer(hub, "POST", address, b"{}", token=resting.writer))[0] == 400
    assert sorted(path.name for path in resting.settings.layout.root.parent.iterdir()) == ["hub"]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from(list("./\\:ab\0\n ~git\u202e")) | st.characters(), max_size=40))
def test_a_path_that_is_taken_stays_below_its_folder(path: str) -> None:
    from pathlib import PurePosixPath, PureWindowsPath

    if not path_trouble(path):
        for kind in (PurePosixPath, PureWindowsPath):
            assert ".." not in kind(path).parts
        assert not PurePosixPath(path).is_absolute()
        assert PurePosixPath(path).as_posix() == path
