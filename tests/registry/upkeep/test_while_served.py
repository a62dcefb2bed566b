"""Looking after a hub from the command line while it is served, with stock clients at work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_inside import content_of
from hub_process import HubProcess, make_hub
from hub_upkeep import let_age

from hfbench.registry.upkeep.collecting import collect
from hfbench.registry.upkeep.session import on_hub

HOUR = 3600.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = make_hub(tmp_path_factory.mktemp("served"))
    hub.start()
    yield hub
    hub.stop()


@pytest.fixture(params=["xet", "lfs"])
def api(request: pytest.FixtureRequest, served: HubProcess, monkeypatch: pytest.MonkeyPatch) -> Any:
    from huggingface_hub import HfApi, constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", request.param == "lfs")
    return HfApi(endpoint=served.url, token=served.writer)


def hfbench(hub: HubProcess, home: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of a command."""
    command = [sys.executable, "-m", "hfbench", "registry", *words, "--folder", hub.settings.folder, "--json"]
    environment = {**os.environ, "HFBENCH_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def rot(path: Path) -> None:
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)[0]
        file.seek(1000)
        file.write(bytes([byte ^ 1]))


def test_what_rotted_is_named_and_a_stock_client_mends_it(api: Any, served: HubProcess, tmp_path: Path) -> None:
    from huggingface_hub import constants

    kind = "blobs" if constants.HF_HUB_DISABLE_XET else "xorbs"
    repo, content = f"team/rots-{kind}", content_of(ord(kind[0]))
    api.create_repo(repo)
    before = set((served.settings.layout.root / kind).glob("*/*"))
    (tmp_path / "w.bin").write_bytes(content)
    commit = api.upload_file(repo_id=repo, path_or_fileobj=tmp_path / "w.bin", path_in_repo="d/w.bin").oid
    [stored] = set((served.settings.layout.root / kind).glob("*/*")) - before
    for cached in (served.settings.layout.root / "cache").glob("*/*"):
        cached.unlink()
    rot(stored)
    code, told = hfbench(served, tmp_path, "fsck")
    assert code == 1
    named = [(place["repo"], place["path"], place["commit"]) for each in told["damages"] for place in each["places"]]
    assert named == [(repo, "d/w.bin", commit)]
    assert hfbench(served, tmp_path, "fsck", "--repair")[0] == 1, "nobody has the bytes yet"
    with served.client() as client:
        assert client.get(f"/{repo}/resolve/main/d/w.bin").status_code == 500
    api.upload_file(repo_id=repo, path_or_fileobj=tmp_path / "w.bin", path_in_repo="d/w.bin")
    with served.client() as client:
        assert client.get(f"/{repo}/resolve/main/d/w.bin").content == content
    code, told = hfbench(served, tmp_path, "fsck")
    assert [each for each in told["damages"] if each["lost"]] == []


def test_uploads_succeed_while_everything_else_is_swept(api: Any, served: HubProcess, tmp_path: Path) -> None:
    """Old content that nothing names lies there all the time; the client sends the same bytes again meanwhile."""
    from huggingface_hub import constants

    repo = f"team/swept-{'lfs' if constants.HF_HUB_DISABLE_XET else 'xet'}"
    stop, failed = threading.Event(), list[BaseException]()

    def sweep() -> None:
        try:
            while not stop.is_set():
                on_hub(served.settings, _aged_and_swept)
        except BaseException as error:
            failed.append(error)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for turn in range(4):
            api.create_repo(repo)
            (tmp_path / "w.bin").write_bytes(content_of(1000) + bytes([turn % 2]) * 50_000)
            api.upload_file(repo_id=repo, path_or_fileobj=tmp_path / "w.bin", path_in_repo="w.bin")
            with served.client() as client:
                assert client.get(f"/{repo}/resolve/main/w.bin").content == (tmp_path / "w.bin").read_bytes()
            api.delete_repo(repo)
    finally:
        stop.set()
        sweeper.join()
    assert not failed
    assert hfbench(served, tmp_path, "fsck")[0] == 0


async def _aged_and_swept(hub: Any) -> None:
    """Everything that no repository holds grows old at once, and is swept; what is held is as young as it is."""
    await let_age(hub, held_too=False)
    await collect(hub, HOUR, unreachable=False, dry_run=False, tell=lambda *told: None)


def test_the_other_commands_tell_what_they_did(served: HubProcess, tmp_path: Path) -> None:
    code, told = hfbench(served, tmp_path, "stats")
    assert (code, told["use"]["serving"], told["use"]["users"]) == (0, True, 4)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    code, told = hfbench(served, tmp_path, "import", str(tmp_path / "m"), "--repo", "lab/m", "--private")
    assert (code, told["done"]["repos"][0]["name"]) == (0, "lab/m")
    with served.client() as client:
        assert client.get("/api/models/lab/m").status_code == 401
    assert hfbench(served, tmp_path, "gc", "--dry-run")[0] == 0
    code, told = hfbench(served, tmp_path, "audit", "--last", "1000")
    assert (code, ("import", "model lab/m") in {(each["action"], each["subject"]) for each in told["deeds"]}) == (
        0,
        True,
    )
    assert not any(secret in json.dumps(told) for secret in (served.admin, served.writer, served.reader))
    assert hfbench(served, tmp_path, "backup", str(tmp_path / "copy"))[0] == 0
    command = [sys.executable, "-m", "hfbench", "registry", "gc", "--grace", "1s", "--folder", served.settings.folder]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (refused.returncode, "stop the server first" in refused.stderr) == (2, True)
