"""A Hugging Face cache as it is found, and what freeing takes and spares."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.caching.facts import CacheReport
from hfbench.hub.caching.free import Freeing
from hfbench.hub.caching.read import read_cache
from hfbench.hub.caching.verify import verified
from hfbench.hub.pulling.partial import JOURNAL, PART
from hfbench.jobs.run import Run

OLD, NEW = "a" * 40, "b" * 40
LONG_AGO = time.time() - 90 * 86400
SHARED, FIRST, SECOND = b"shared" * 1000, b"first" * 1000, b"second" * 1000


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Cache:
    """A cache written by hand, as stock clients lay it out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.top = folder / "models--org--m"
        self.add(OLD, {"shared.bin": SHARED, "w.bin": FIRST})
        self.add(NEW, {"shared.bin": SHARED, "w.bin": SECOND}, ref="main")

    def add(self, commit: str, files: dict[str, bytes], ref: str = "", repo: str = "models--org--m") -> None:
        top = self.folder / repo
        for name, content in files.items():
            blob, link = top / "blobs" / sha(content), top / "snapshots" / commit / name
            for each in (blob, link):
                each.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(content)
            link.symlink_to(os.path.relpath(blob, link.parent))
            os.utime(blob, (LONG_AGO, LONG_AGO))
        if ref:
            (top / "refs").mkdir(exist_ok=True)
            (top / "refs" / ref).write_text(commit)

    def blob(self, content: bytes) -> Path:
        return self.top / "blobs" / sha(content)

    def orphan(self, name: str, content: bytes) -> Path:
        path = self.top / "blobs" / name
        path.write_bytes(content)
        os.utime(path, (LONG_AGO, LONG_AGO))
        return path

    def lock(self, name: str, text: str = "") -> Path:
        path = self.folder / ".locks" / "models--org--m" / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self) -> CacheReport:
        return read_cache(self.folder)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "hf" / "hub")


def freed(cache: Cache, *, dry_run: bool = False) -> Freeing:
    return Freeing(cache.folder, dry_run=dry_run)


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def locks_of(cache: Cache) -> set[str]:
    """Lock files, which freeing makes and clients never delete."""
    return {str(path.relative_to(cache.folder)) for path in (cache.folder / ".locks").rglob("*")}


def test_revisions_are_told_with_what_they_share_and_what_is_their_own(cache: Cache) -> None:
    [repo] = cache.read().repos
    assert (repo.kind, repo.repo, repo.bytes) == ("model", "org/m", len(SHARED) + len(FIRST) + len(SECOND))
    assert repo.shared_bytes == len(SHARED)
    old, new = repo.revisions
    assert (old.commit, old.refs, old.own_bytes) == (OLD, (), len(FIRST))
    assert (new.commit, new.refs, new.own_bytes) == (NEW, ("main",), len(SECOND))


def test_orphans_broken_links_and_strange_entries_are_told(cache: Cache) -> None:
    cache.orphan(sha(b"lost"), b"lost")
    cache.orphan(f"{sha(b'x')}.0a1b2c3d.incomplete", b"half")
    cache.orphan(f"{'c' * 64}{PART}", b"part")
    cache.orphan(f"{'c' * 64}{JOURNAL}", (json.dumps({"path": "w.bin", "etag": "c" * 64}) + "\n").encode())
    (cache.top / "snapshots" / NEW / "gone.json").symlink_to("../../blobs/nothing")
    (cache.folder / "notes.txt").write_text("x")
    report = cache.read()
    [repo] = report.repos
    assert [each.bytes for each in repo.unnamed] == [4]
    assert [(each.resumable, each.file) for each in repo.broken_downloads] == [(False, ""), (True, "w.bin")]
    assert repo.orphan_bytes == 8
    assert repo.revisions[1].broken == ("gone.json",)
    assert report.strange == ("notes.txt",)


def test_held_stale_and_foreign_locks_are_told_apart(cache: Cache) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    host = socket.gethostname()
    cache.lock("idle")
    stale = cache.lock("stale", f"{dead.pid}\n{host}\n")
    newer = cache.lock("newer", f"filelock/2\npid={dead.pid}\nhost={host}\nmode=exclusive\n")
    alive = cache.lock("alive", f"{os.getpid()}\n{host}\n")
    foreign = cache.lock("foreign", f"{dead.pid}\nanother-machine\n")
    held = cache.lock("held")
    with held.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        report = cache.read()
    states = {Path(each.path): each.state for each in report.locks}
    assert states == {stale: "stale", newer: "stale", alive: "held", foreign: "unknown", held: "held"}
    assert report.idle_locks == 1
    owners = {Path(each.path): each.owner for each in report.locks}
    assert str(os.getpid()) in owners[held]
    assert "another-machine" in owners[foreign]


def test_a_blob_that_rotted_is_found_with_the_files_that_are_it(cache: Cache) -> None:
    assert verified(cache.read(), Run()).damaged == ()
    cache.blob(SHARED).write_bytes(SHARED[:-1] + b"X")
    found = verified(cache.read(), Run())
    assert found.verified == 3
    [damaged] = found.damaged
    assert Path(damaged.path) == cache.blob(SHARED)
    assert set(damaged.files) == {f"{OLD[:12]}/shared.bin", f"{NEW[:12]}/shared.bin"}


def test_freeing_a_revision_keeps_what_another_one_uses(cache: Cache) -> None:
    freeing = freed(cache)
    freeing.model("org/m", OLD[:8])
    assert sum(each.bytes for each in freeing.tally.freed) == len(FIRST)
    assert not cache.blob(FIRST).exists()
    assert not (cache.top / "snapshots" / OLD).exists()
    assert (cache.top / "snapshots" / NEW / "shared.bin").read_bytes() == SHARED
    freeing = freed(cache)
    freeing.model("org/m", "main")
    assert not cache.top.exists()


def test_a_dry_run_removes_nothing_and_tells_what_freeing_then_does(cache: Cache) -> None:
    cache.orphan(sha(b"lost"), b"lost")
    frees: list[Callable[[Freeing], None]] = [
        lambda each: each.orphans(),
        lambda each: each.model("org/m", OLD),
        lambda each: each.unused(86400.0),
    ]
    for free in frees:
        before = everything(cache.folder)
        told, done = freed(cache, dry_run=True), freed(cache)
        free(told)
        assert everything(cache.folder) == before
        free(done)
        assert told.tally.freed == done.tally.freed != []
        assert everything(cache.folder) < before | {".locks", ".locks/models--org--m"} | locks_of(cache)


def test_orphans_go_and_what_is_named_or_can_be_gone_on_with_stays(cache: Cache) -> None:
    lost = cache.orphan(sha(b"lost"), b"lost")
    half = cache.orphan(f"{sha(b'x')}.0a1b2c3d.incomplete", b"half")
    part = cache.orphan(f"{'c' * 64}{PART}", b"part")
    journal = cache.orphan(f"{'c' * 64}{JOURNAL}", b'{"path": "w.bin"}\n')
    stale = cache.lock("stale", f"{2**22 + 1}\n{socket.gethostname()}\n")
    freed(cache).orphans()
    assert not any(path.exists() for path in (lost, half, stale))
    assert part.exists()
    assert journal.exists()
    assert {sha(each) for each in (SHARED, FIRST, SECOND)} <= {each.name for each in (cache.top / "blobs").iterdir()}
    freed(cache).orphans(partials=True)
    assert not part.exists()
    assert not journal.exists()


def test_what_changed_a_moment_ago_is_spared(cache: Cache) -> None:
    young = cache.top / "blobs" / f"{'d' * 64}.0a1b2c3d.incomplete"
    young.write_bytes(b"being written")
    freeing = freed(cache)
    freeing.orphans()
    assert young.exists()
    assert "may be writing it" in freeing.tally.spared[0].why


def test_what_a_lock_holds_is_never_freed(cache: Cache) -> None:
    half = cache.orphan(f"{'d' * 64}.0a1b2c3d.incomplete", b"half")
    before = everything(cache.top)
    code = f"""
from filelock import FileLock
import sys
with FileLock({str(cache.lock("d" * 64))!r}), FileLock({str(cache.lock(sha(SECOND)))!r}):
    print("held", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for dry_run in (True, False):
            freeing = freed(cache, dry_run=dry_run)
            freeing.orphans()
            assert [str(holder.pid) in each.why for each in freeing.tally.spared] == [True]
            with pytest.raises(HfbenchError, match=f"org/m: is being downloaded: process {holder.pid}"):
                freeing.model("org/m", "main")
            with pytest.raises(HfbenchError, match="is being downloaded"):
                freeing.model("org/m")
            freeing.unused(86400.0)
        assert everything(cache.top) == before
        holder.communicate("")
    freed(cache).orphans()
    assert not half.exists()


def test_only_what_nobody_read_for_so_long_goes(cache: Cache) -> None:
    os.utime(cache.blob(SECOND))
    freed(cache).unused(30 * 86400.0)
    assert not (cache.top / "snapshots" / OLD).exists()
    assert (cache.top / "snapshots" / NEW / "w.bin").read_bytes() == SECOND


def test_verifying_is_no_use_of_a_model(cache: Cache) -> None:
    other = cache.orphan("other", b"x" * 5000)
    os.utime(other, (LONG_AGO, LONG_AGO))
    other.read_bytes()
    if other.stat().st_atime == LONG_AGO:
        pytest.skip("this file system keeps no time of access")
    before = [each.last_used for each in cache.read().repos]
    assert verified(cache.read(), Run()).verified
    assert [each.last_used for each in cache.read().repos] == before
    freed(cache).unused(30 * 86400.0)
    assert cache.read().repos == (), "what nobody used for so long goes, although it was verified just now"


@pytest.mark.parametrize("repo", ["../outside", "org/../../outside", "..", "no/such", "", "org/m/../../x"])
def test_a_name_that_is_no_repository_frees_nothing(cache: Cache, repo: str) -> None:
    outside = cache.folder.parent / "outside"
    outside.mkdir()
    before = everything(cache.folder.parent)
    with pytest.raises(UsageError):
        freed(cache).model(repo)
    assert everything(cache.folder.parent) == before


def test_links_in_place_of_folders_lead_nowhere(cache: Cache, tmp_path: Path) -> None:
    """A repository, a snapshot and the blobs of another, each a link to a folder that must not be touched."""
    precious = tmp_path / "precious"
    (precious / "snapshots" / OLD).mkdir(parents=True)
    (precious / "blobs").mkdir()
    for path in (precious / "thesis.txt", precious / "blobs" / sha(b"x"), precious / "snapshots" / OLD / "y"):
        path.write_text("x")
        os.utime(path, (LONG_AGO, LONG_AGO))
    (cache.folder / "models--evil--link").symlink_to(precious)
    other = cache.folder / "models--evil--inside"
    other.mkdir()
    (other / "snapshots").symlink_to(precious / "snapshots")
    (other / "blobs").symlink_to(precious / "blobs")
    (cache.top / "snapshots" / ("e" * 40)).symlink_to(precious)
    (cache.top / "snapshots" / OLD / "thesis.txt").symlink_to(precious / "thesis.txt")
    before = everything(precious)
    freeing = freed(cache)
    freeing.orphans(partials=True)
    freeing.unused(1.0)
    with pytest.raises(UsageError):
        freeing.model("evil/link")
    freed(cache).model("evil/inside")
    assert everything(precious) == before
    assert (precious / "thesis.txt").read_text() == "x"


def test_the_command_tells_the_cache_and_frees_it(
    cache: Cache, hfbench: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    cache.orphan(f"{sha(b'x')}.0a1b2c3d.incomplete", b"half")
    told = hfbench("cache")
    assert told.returncode == 0, told.stderr
    assert "org/m" in told.stdout
    assert "1 broken-off download that nothing goes on with, 4 B" in told.stdout
    assert hfbench("cache", "--verify").returncode == 0
    cache.blob(FIRST).write_bytes(b"rot")
    assert hfbench("cache", "--verify").returncode == 1
    assert hfbench("cache", "free").returncode == 2
    done = hfbench("cache", "free", "org/m", "--json")
    assert done.returncode == 0, done.stderr
    assert not cache.top.exists()
    assert json.loads(hfbench("cache", "--json").stdout)["repos"] == []


def test_stock_clients_read_the_cache_after_a_revision_was_freed(cache: Cache) -> None:
    freed(cache).model("org/m", OLD)
    from huggingface_hub import scan_cache_dir, snapshot_download

    info = scan_cache_dir(cache.folder)
    assert not info.warnings
    assert [revision.commit_hash for repo in info.repos for revision in repo.revisions] == [NEW]
    assert snapshot_download("org/m", cache_dir=cache.folder, local_files_only=True).endswith(NEW)
