"""Files as they lie on disk: links, caches, pointers, and hashes that are remembered until a file changes."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.errors import UsageError
from hfbench.models.inventory import digest as digest_room
from hfbench.models.inventory.digest import CHUNK, Digest, Identity, Stopped, digest_of
from hfbench.models.inventory.digest_cache import DigestCache
from hfbench.models.inventory.expected import DOWNLOADS, of_digest
from hfbench.models.inventory.facts import FileEntry, Inventory
from hfbench.models.inventory.inventory import Reading, hashed, take_inventory, wanted
from hfbench.models.problem import ModelError
from hfbench.models.reference import resolve

OLD = 1_600_000_000
"""A time of change long gone: such a file may be remembered."""


def git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pointer(data: bytes) -> str:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256(data)}\nsize {len(data)}\n"


def take(folder: Path) -> Inventory:
    return take_inventory(resolve(str(folder)))


def of(inventory: Inventory, name: str) -> FileEntry:
    return next(each for each in inventory.files if each.name == name)


@pytest.fixture
def cache(tmp_path: Path) -> DigestCache:
    return DigestCache(tmp_path / "digests.sqlite")


@pytest.fixture
def check(cache: DigestCache) -> Callable[..., Inventory]:
    """The inventory of a folder with every hash."""

    def run(folder: Path) -> Inventory:
        found = take(folder)
        return replace(found, files=tuple(hashed(found.files, folder, cache=cache)))

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "m"
    made.mkdir()
    (made / "config.json").write_bytes(b"{}")
    (made / "model.safetensors").write_bytes(b"weights" * 100)
    for each in made.iterdir():
        os.utime(each, (OLD, OLD))
    return made


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A cached repository of two revisions that share a configuration, one blob of none, and one broken download."""
    made = tmp_path / "hub" / "models--org--tiny"
    first, second = made / "snapshots" / ("1" * 40), made / "snapshots" / ("2" * 40)
    for each in (first, second, made / "blobs", made / "refs" / "pr", made / ".no_exist" / ("1" * 40)):
        each.mkdir(parents=True)

    def link(revision: Path, name: str, data: bytes, digest: str) -> None:
        (made / "blobs" / digest).write_bytes(data)
        os.utime(made / "blobs" / digest, (OLD, OLD))
        (revision / name).symlink_to(f"../../blobs/{digest}")

    config, weights, older = b'{"a": 1}', b"w" * 1000, b"v" * 500
    link(first, "config.json", config, git_id(config))
    link(first, "model.safetensors", weights, sha256(weights))
    link(second, "config.json", config, git_id(config))
    link(second, "model.safetensors", older, sha256(older))
    (made / "blobs" / ("e" * 64)).write_bytes(b"nobody")
    (made / "blobs" / ("f" * 64 + ".1234.incomplete")).write_bytes(b"half")
    (made / "refs" / "main").write_text("1" * 40)
    (made / "refs" / "pr" / "7").write_text("2" * 40)
    (made / "refs" / "odd").write_text("not a commit")
    (made / ".no_exist" / ("1" * 40) / "added_tokens.json").touch()
    return made


# -- how files lie ------------------------------------------------------------


def test_a_local_folder_has_all_its_bytes_to_itself(folder: Path) -> None:
    found = take(folder)
    assert [each.name for each in found.files] == ["config.json", "model.safetensors"]
    assert (found.bytes, found.own_bytes, found.shared_bytes, found.cache) == (702, 702, 0, None)


def test_content_with_two_names_here_is_counted_once_and_with_another_elsewhere_is_shared(folder: Path) -> None:
    (folder / "copy.json").hardlink_to(folder / "config.json")
    (folder / "link.safetensors").symlink_to("model.safetensors")
    found = take(folder)
    assert (found.bytes, found.own_bytes) == (702, 702)
    assert of(found, "copy.json").names == 2
    (folder.parent / "elsewhere").hardlink_to(folder / "model.safetensors")
    assert take(folder).shared_bytes == 700


def test_a_cached_revision_tells_blobs_and_what_it_shares(repository: Path) -> None:
    found = take(repository / "snapshots" / ("1" * 40))
    config, weights = of(found, "config.json"), of(found, "model.safetensors")
    assert (config.blob, config.shared) == (git_id(b'{"a": 1}'), ("2" * 40,))
    assert (weights.blob, weights.shared) == (sha256(b"w" * 1000), ())
    assert (found.bytes, found.own_bytes, found.shared_bytes) == (1008, 1000, 8)
    layout = found.cache
    assert layout is not None
    assert layout.refs == {"main": "1" * 40, "pr/7": "2" * 40}
    assert (layout.blobs, layout.unused, layout.unused_bytes) == (4, 1, 6)
    assert (layout.incomplete, layout.incomplete_bytes, layout.absent) == (1, 4, ("added_tokens.json",))
    here, other = layout.revisions
    assert (here.here, here.refs, here.files, here.bytes, here.own_bytes) == (True, ("main",), 2, 1008, 1000)
    assert (other.here, other.refs, other.bytes, other.own_bytes) == (False, ("pr/7",), 508, 500)


def test_a_dangling_link_of_a_cache_is_counted_and_told(repository: Path) -> None:
    (repository / "blobs" / sha256(b"w" * 1000)).unlink()
    found = take(repository / "snapshots" / ("1" * 40))
    assert of(found, "model.safetensors").code == "broken_symlink"
    assert found.cache is not None
    assert [each.dangling for each in found.cache.revisions] == [1, 0]


def test_a_link_into_a_cache_is_known_by_its_blob(folder: Path, repository: Path) -> None:
    (folder / "linked.json").symlink_to(repository / "blobs" / git_id(b'{"a": 1}'))
    found = take(folder)
    expected = of(found, "linked.json").expected
    assert expected is not None
    assert (expected.algorithm, expected.digest) == ("git-sha1", git_id(b'{"a": 1}'))
    assert found.shared_bytes == 8


def test_a_pointer_tells_what_it_stands_for_and_whether_git_has_it(folder: Path) -> None:
    data = b"real weights"
    (folder / "model.safetensors").write_text(pointer(data))
    (folder / "notes.txt").write_text("version https://git-lfs.github.com/spec/v1\nno oid at all\n" + "x" * 80)
    found = take(folder)
    lfs = of(found, "model.safetensors").lfs
    assert lfs is not None
    assert (lfs.oid, lfs.size, lfs.fetched) == (sha256(data), 12, False)
    assert of(found, "notes.txt").lfs is None
    stored = folder / ".git" / "lfs" / "objects" / lfs.oid[:2] / lfs.oid[2:4] / lfs.oid
    stored.parent.mkdir(parents=True)
    stored.write_bytes(data)
    lfs = of(take(folder), "model.safetensors").lfs
    assert lfs is not None
    assert lfs.fetched


def test_fifos_and_devices_are_listed_and_never_opened(
    folder: Path, check: Callable[..., Inventory], tmp_path: Path
) -> None:
    os.mkfifo(folder / "pipe.safetensors")
    (folder / "endless.bin").symlink_to("/dev/zero")
    (folder / "secret.json").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").write_text("{}")
    done: list[Inventory] = []
    thread = threading.Thread(target=lambda: done.append(check(folder)), daemon=True)
    thread.start()
    thread.join(60)
    assert done, "it hangs on the FIFO"
    for name in ("pipe.safetensors", "endless.bin", "secret.json"):
        entry = of(done[0], name)
        assert entry.problem
        assert (entry.sha256, entry.verdict) == (None, "")


# -- hashes -------------------------------------------------------------------


def test_hashes_are_those_of_hashlib_and_git(folder: Path, repository: Path, check: Callable[..., Inventory]) -> None:
    entry = of(check(folder), "model.safetensors")
    assert (entry.sha256, entry.git_sha1, entry.verdict) == (sha256(b"weights" * 100), None, "unknown")
    config = of(check(repository / "snapshots" / ("1" * 40)), "config.json")
    assert (config.sha256, config.git_sha1, config.verdict) == (sha256(b'{"a": 1}'), git_id(b'{"a": 1}'), "ok")


@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=3000), chunk=st.integers(1, 900))
def test_any_content_in_chunks_of_any_size_has_its_hash(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("d") / "f.bin"
    path.write_bytes(data)
    read: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest_room, "CHUNK", chunk)
        found, identity = digest_of(path, path.parent, git=True, read=read.append, stopped=lambda: False)
    assert found == Digest(sha256(data), git_id(data))
    assert (sum(read), identity.size) == (len(data), len(data))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_one_byte_changed_in_a_blob_differs(repository: Path, check: Callable[..., Inventory], name: str) -> None:
    snapshot = repository / "snapshots" / ("1" * 40)
    blob = (snapshot / name).resolve()
    blob.write_bytes(b"X" + blob.read_bytes()[1:])
    found = check(snapshot)
    assert [each.name for each in found.differing] == [name]
    assert blob.name in of(found, name).note


def test_what_a_download_left_behind_is_compared(folder: Path, check: Callable[..., Inventory]) -> None:
    for name, etag in (("config.json", git_id(b"{}")), ("model.safetensors", f'"{"0" * 64}"')):
        metadata = folder / DOWNLOADS / f"{name}.metadata"
        metadata.parent.mkdir(parents=True, exist_ok=True)
        metadata.write_text(f"{'1' * 40}\n{etag}\n1700000000.0\n")
    found = check(folder)
    assert (of(found, "config.json").verdict, of(found, "model.safetensors").verdict) == ("ok", "differs")
    assert found.notes == ("not listed: what lies in '.cache'",)


def test_metadata_outside_the_folder_is_not_asked(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "out" / "huggingface" / "download"
    outside.mkdir(parents=True)
    (outside / "config.json.metadata").write_text(f"{'1' * 40}\n{'0' * 64}\n1.0\n")
    (folder / ".cache").symlink_to(tmp_path / "out")
    assert of(take(folder), "config.json").expected is None


@pytest.mark.parametrize("etag", ["", "xyz", "a" * 39, "A" * 64, "a" * 64 + "-5"])
def test_an_etag_of_another_kind_means_nothing(etag: str) -> None:
    assert of_digest(etag, "x") is None


def test_a_pointer_differs_from_the_file_it_stands_for(folder: Path, check: Callable[..., Inventory]) -> None:
    (folder / "model.safetensors").write_text(pointer(b"real"))
    entry = of(check(folder), "model.safetensors")
    assert (entry.verdict, entry.note) == ("differs", "this is a git-lfs pointer, not the file itself")


def test_a_file_that_is_gone_is_unreadable_and_the_others_are_hashed(
    folder: Path, repository: Path, check: Callable[..., Inventory], cache: DigestCache
) -> None:
    found = take(folder)
    (folder / "config.json").unlink()
    verdicts = {each.name: each.verdict for each in hashed(found.files, folder, cache=cache)}
    assert verdicts == {"config.json": "unreadable", "model.safetensors": "unknown"}
    (repository / "blobs" / sha256(b"w" * 1000)).unlink()
    assert of(check(repository / "snapshots" / ("1" * 40)), "model.safetensors").verdict == "unreadable"


def test_a_file_that_changes_while_it_is_read_is_told(folder: Path) -> None:
    path = folder / "model.safetensors"

    def grow(count: int) -> None:
        with path.open("ab") as file:
            file.write(b"more")

    with pytest.raises(ModelError, match="changed while it was read"):
        digest_of(path, folder, read=grow, stopped=lambda: path.stat().st_size > 2000)


def test_hashing_can_be_stopped_between_two_chunks(folder: Path, cache: DigestCache) -> None:
    with (folder / "big.bin").open("wb") as file:
        file.truncate(20 * CHUNK)
    told: list[Reading] = []
    with pytest.raises(Stopped):
        list(hashed(take(folder).files, folder, cache=cache, tell=told.append, stopped=lambda: len(told) > 3))
    assert told[-1].done < 6 * CHUNK
    assert told[-1].total == 20 * CHUNK + 702


def test_memory_does_not_grow_with_the_file(folder: Path, cache: DigestCache) -> None:
    with (folder / "big.bin").open("wb") as file:
        file.truncate(64 * 2**20)
    entries = wanted(take(folder).files, ["big.bin"])
    tracemalloc.start()
    try:
        list(hashed(entries, folder, cache=cache))
        assert tracemalloc.get_traced_memory()[1] < 4 * CHUNK
    finally:
        tracemalloc.stop()


def test_patterns_choose_by_path_and_by_name(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.json").touch()
    files = take(folder).files
    assert [each.name for each in wanted(files, ["*.json"])] == ["config.json", "sub/deep.json"]
    assert [each.name for each in wanted(files, ["sub/*", "model*"])] == ["model.safetensors", "sub/deep.json"]
    assert wanted(files, []) == list(files)
    with pytest.raises(UsageError, match="no file matches 'nothing'"):
        wanted(files, ["nothing"])


# -- what is remembered -------------------------------------------------------


def test_a_hash_is_remembered_until_the_file_changes(folder: Path, check: Callable[..., Inventory]) -> None:
    assert not of(check(folder), "model.safetensors").cached
    again = of(check(folder), "model.safetensors")
    assert (again.cached, again.sha256) == (True, sha256(b"weights" * 100))
    (folder / "model.safetensors").write_bytes(b"changed" * 100)
    os.utime(folder / "model.safetensors", (OLD + 1, OLD + 1))
    changed = of(check(folder), "model.safetensors")
    assert (changed.cached, changed.sha256) == (False, sha256(b"changed" * 100))


def test_a_file_changed_a_moment_ago_is_not_remembered(cache: DigestCache) -> None:
    now = time.time_ns()
    young = Identity(1, 2, now, 3)
    cache.keep(young, Digest("a" * 64), now + 1)
    assert cache.find(young, git=False) is None
    cache.keep(replace(young, mtime_ns=now - 10**9), Digest("a" * 64), now)
    assert cache.find(replace(young, mtime_ns=now - 10**9), git=False) == Digest("a" * 64)


@settings(max_examples=50, deadline=None)
@given(st.tuples(*[st.integers(0, 2**64 - 1)] * 2, st.integers(-(2**62), 2**62), st.integers(0, 2**62)))
def test_any_identity_is_found_again_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, numbers: tuple[int, int, int, int]
) -> None:
    identity = Identity(*numbers)
    with DigestCache(tmp_path_factory.mktemp("c") / "d.sqlite") as cache:
        cache.keep(identity, Digest("b" * 64, "c" * 40), identity.mtime_ns + 10**9)
        assert cache.find(identity, git=True) == Digest("b" * 64, "c" * 40)
        assert cache.find(replace(identity, size=identity.size + 1), git=False) is None
        assert cache.find(replace(identity, mtime_ns=identity.mtime_ns + 1), git=False) is None


def test_a_hash_kept_without_the_git_id_is_taken_anew_when_that_is_wanted(cache: DigestCache) -> None:
    identity = Identity(1, 2, 3, 4)
    cache.keep(identity, Digest("a" * 64), 10**12)
    assert cache.find(identity, git=True) is None
    assert cache.find(identity, git=False) is not None


@pytest.mark.parametrize("harm", ["garbage", "version", "folder", "table"])
def test_a_damaged_or_foreign_table_is_made_again_or_kept_in_memory(tmp_path: Path, harm: str) -> None:
    file = tmp_path / "d.sqlite"
    if harm == "garbage":
        file.write_bytes(b"no database" * 1000)
    elif harm == "folder":
        file.mkdir()
    else:
        db = sqlite3.connect(file)
        db.execute("CREATE TABLE digests (other)") if harm == "table" else db.execute("PRAGMA user_version = 99")
        db.commit()
        db.close()
    identity = Identity(1, 2, 3, 4)
    with DigestCache(file) as cache:
        cache.keep(identity, Digest("a" * 64), 10**12)
        assert cache.find(identity, git=False) == Digest("a" * 64)


def test_hashes_are_written_together_and_the_last_ones_at_the_end(tmp_path: Path) -> None:
    """A transaction for each of twenty thousand small files took a minute."""
    file, other = tmp_path / "d.sqlite", Identity(1, 3, 3, 4)
    with DigestCache(file) as cache, DigestCache(file) as beside:
        cache.keep(Identity(1, 2, 3, 4), Digest("a" * 64), 10**12)
        cache.keep(other, Digest("b" * 64), 10**12)
        assert cache.find(other, git=False) == Digest("b" * 64)
        assert beside.find(other, git=False) is None
    with DigestCache(file) as again:
        assert again.find(other, git=False) == Digest("b" * 64)
