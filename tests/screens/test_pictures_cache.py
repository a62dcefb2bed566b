"""The cache as pictures: all that can be wrong with it, and one repository. All of it is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.actions.files import FilesResult
from hfbench.hub.caching.facts import (
    BrokenDownload,
    CachedRepo,
    CacheReport,
    CacheRevision,
    Damaged,
    Lock,
    SharedStore,
    Unnamed,
)
from hfbench.models.inventory.facts import FileEntry
from hfbench.screens import cache_keys
from hfbench.screens.cache import CacheScreen
from hfbench.screens.cache_asks import CacheListed, FilesShown
from hfbench.screens.cache_jobs import CacheJobsRead
from hfbench.screens.cache_page import CacheRepoScreen
from hfbench.units import GIB, MIB
from hfbench.widgets.cache_rows import KnownCache, Verified

FOLDER = "/srv/hf/hub"
QWEN = f"{FOLDER}/models--Qwen--Qwen2-7B-Instruct"
OLD, NEW = "41c66b0be1c3081f13defc6bdf946c2ef240d6a6", "f2826a00ceef68f0f2b946d945ecc0477ce4450c"


def revision(commit: str, own: int, *refs: str, broken: tuple[str, ...] = (), days: float = 0.2) -> CacheRevision:
    used = NOW - days * 86400
    return CacheRevision(
        commit=commit, refs=refs, files=11, bytes=15 * GIB, own_bytes=own, broken=broken, last_used=used
    )


def repo(name: str, kind: Any, size: int, *revisions: CacheRevision, **more: Any) -> CachedRepo:
    told: dict[str, Any] = {"unnamed": (), "broken_downloads": (), "shared_bytes": 0, "store_bytes": 0}
    path = f"{FOLDER}/{kind}s--{name.replace('/', '--')}"
    used = max(each.last_used for each in revisions)
    return CachedRepo(kind=kind, repo=name, path=path, bytes=size, revisions=revisions, last_used=used, **(told | more))


ORPHAN = Unnamed(path=f"{QWEN}/blobs/0f1e2d3c4b5a", bytes=3 * GIB)
PART = BrokenDownload(
    path=f"{QWEN}/blobs/77aa.incomplete",
    bytes=2 * GIB,
    resumable=True,
    file="model-00004-of-00004.safetensors",
    changed=NOW - 3600,
)
REPORT = CacheReport(
    folder=FOLDER,
    repos=(
        repo(
            "Qwen/Qwen2-7B-Instruct",
            "model",
            20 * GIB,
            revision(NEW, 12 * MIB, "main"),
            revision(OLD, 40 * MIB, days=80),
            shared_bytes=15 * GIB,
            unnamed=(ORPHAN,),
            broken_downloads=(PART,),
        ),
        repo("HuggingFaceTB/SmolLM2-135M", "model", 269 * MIB, revision(OLD, 269 * MIB, "main")),
        repo("org/torn", "model", 90 * MIB, revision(OLD, 90 * MIB, "main", broken=("model.safetensors",), days=9)),
        repo("org/flipped", "model", 80 * MIB, revision(NEW, 80 * MIB, "main", days=30)),
        repo("HuggingFaceFW/fineweb-edu", "dataset", 70 * MIB, revision(OLD, 70 * MIB, "main", days=200)),
    ),
    bytes=21 * GIB,
    store=SharedStore(path=f"{FOLDER}/blobs", contents=12, bytes=3 * GIB, unused_bytes=0),
    locks=(
        Lock(path=f"{FOLDER}/.locks/models--org--torn/9a.lock", state="stale", owner="process 41, which is no more"),
        Lock(path=f"{FOLDER}/.locks/models--org--m/77.lock", state="held", owner="process 97 (hf)"),
    ),
    idle_locks=4,
    strange=("notes.txt",),
)
FLIPPED = Damaged(
    path=f"{FOLDER}/models--org--flipped/blobs/c4f1a2",
    text="its hash is 88d1e0",
    files=(f"{NEW[:12]}/model.safetensors",),
)
VERIFIED = Verified(folder=FOLDER, blobs=61, ended=NOW - 1200, damaged=(FLIPPED,))
KNOWN = KnownCache(report=REPORT, free_bytes=812 * GIB, verified=VERIFIED)
NAMES = {"config.json": 663, "generation_config.json": 243, "model-00001-of-00004.safetensors": 4 * GIB}
FILES = FilesResult(
    model=QWEN,
    folder=QWEN,
    source="folder",
    repo=None,
    revision=None,
    commit=None,
    files=tuple(
        FileEntry(name=name, path=f"{QWEN}/{name}", kind="weights", bytes=size) for name, size in NAMES.items()
    ),
    bytes=4 * GIB,
    own_bytes=4 * GIB,
    shared_bytes=0,
    cache=None,
)


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is this one, whatever lies on this machine."""
    monkeypatch.setattr(cache_keys, "list_cache", lambda stopped, post: post(CacheListed(KNOWN)))
    monkeypatch.setattr(CacheRepoScreen, "_follow", lambda self: self.post_message(FilesShown(self._folder, FILES)))


async def opened(pilot: Pilot[None], until: Any) -> Any:
    """The list, with what a job found."""
    app: Any = pilot.app
    await pilot.press("7")
    await until(pilot, lambda: isinstance(app.screen, CacheScreen) and app.screen.listed and app.screen._read)
    app.screen.post_message(CacheJobsRead((), VERIFIED))
    await until(pilot, lambda: app.screen.known.verified)
    return app


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
def test_cache(take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
    async def scene(pilot: Pilot[None]) -> None:
        await opened(pilot, until)

    take(look, scene)


@pytest.mark.parametrize("look", [each.values for each in LOOKS[:2]], ids=[str(each.id) for each in LOOKS[:2]])
def test_repository(take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
    async def scene(pilot: Pilot[None]) -> None:
        app = await opened(pilot, until)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CacheRepoScreen) and app.screen.at_rest)

    take(look, scene)
