"""Models of a disk come into a hub under their own commit ids, and the disk is as it was."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from hub_inside import content_of
from hub_process import HubProcess, make_hub
from hub_upkeep import Inside

from hfbench.actions.registry_import import RegistryImport
from hfbench.errors import MissingError, UsageError
from hfbench.jobs.run import Run
from hfbench.registry.hub import Hub
from hfbench.registry.upkeep.facts import Imported
from hfbench.registry.upkeep.fsck import check
from hfbench.registry.upkeep.importing import Importer
from hfbench.registry.upkeep.session import on_hub
from hfbench.registry.upkeep.sources import sources

COMMIT = "0123456789" * 4
OLDER = "9876543210" * 4


def tell(*told: object) -> None:
    """Nobody watches."""


async def bring(hub: Hub, folder: Path, repo: str = "", way: str = "auto") -> Imported:
    return await Importer(hub, way, private=False, tell=tell).run(sources(folder, repo))


def cache(folder: Path) -> Path:
    """A Hugging Face cache as stock clients lay it out, with two revisions that share their weights."""
    home = folder / "cache" / "models--org--tiny"
    weights, config, older = content_of(1), b'{"a": 1}', b'{"a": 0}'
    blobs = {
        hashlib.sha256(weights).hexdigest(): weights,
        hashlib.sha1(b"blob %d\0" % len(config) + config).hexdigest(): config,
        hashlib.sha1(b"blob %d\0" % len(older) + older).hexdigest(): older,
    }
    (home / "blobs").mkdir(parents=True)
    for name, content in blobs.items():
        (home / "blobs" / name).write_bytes(content)
    first, second, third = blobs
    for commit, small in ((COMMIT, second), (OLDER, third)):
        (home / "snapshots" / commit / "deep").mkdir(parents=True)
        (home / "snapshots" / commit / "config.json").symlink_to(f"../../blobs/{small}")
        (home / "snapshots" / commit / "deep" / "w.bin").symlink_to(f"../../../blobs/{first}")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)
    return folder / "cache"


def state(folder: Path) -> dict[str, tuple[int, ...]]:
    """Everything that writing to a file would change."""
    told = {str(path): path.lstat() for path in sorted(folder.rglob("*"))}
    return {name: (each.st_ino, each.st_size, each.st_mtime_ns, each.st_mode) for name, each in told.items()}


async def test_a_cache_comes_in_with_its_revisions(inside: Inside, tmp_path: Path) -> None:
    hub, client = inside
    folder = cache(tmp_path)
    before = state(folder)
    done = await bring(hub, folder)
    assert state(folder) == before
    [repo] = done.repos
    assert (repo.name, set(repo.revisions), repo.new) == ("org/tiny", {COMMIT, OLDER}, True)
    assert done.copied + done.cloned == 1, "both revisions share the weights"
    told = (await client.get("/api/models/org/tiny", params={"blobs": "true"})).json()
    assert told["sha"] == COMMIT
    answer = await client.get("/org/tiny/resolve/main/deep/w.bin")
    assert (answer.content, answer.headers["x-repo-commit"]) == (content_of(1), COMMIT)
    assert answer.headers["etag"].strip('"') == hashlib.sha256(content_of(1)).hexdigest()
    old = await client.get(f"/org/tiny/resolve/{OLDER}/config.json")
    assert old.content == b'{"a": 0}'
    assert old.headers["etag"].strip('"') == hashlib.sha1(b'blob 8\0{"a": 0}').hexdigest()
    kept = hub.layout.blob(hashlib.sha256(content_of(1)).hexdigest()).stat()
    assert stat.S_IMODE(kept.st_mode) == 0o444
    assert kept.st_nlink == 1
    again = await bring(hub, folder)
    assert (again.copied, again.cloned, again.repos[0].new) == (0, 0, False)
    assert not (await check(hub, quick=False, repair=False, tell=tell)).damages


async def test_a_revision_that_was_cached_in_part_is_completed(inside: Inside, tmp_path: Path) -> None:
    hub, client = inside
    folder = cache(tmp_path)
    weights = folder / "models--org--tiny" / "snapshots" / COMMIT / "deep" / "w.bin"
    target = os.readlink(weights)
    weights.unlink()
    await bring(hub, folder)
    assert (await client.get(f"/org/tiny/resolve/{COMMIT}/deep/w.bin")).status_code == 404
    weights.symlink_to(target)
    await bring(hub, folder)
    assert (await client.get(f"/org/tiny/resolve/{COMMIT}/deep/w.bin")).content == content_of(1)


async def test_a_tree_of_folders_comes_in_and_its_changes_are_commits(inside: Inside, tmp_path: Path) -> None:
    hub, client = inside
    model = tmp_path / "tree" / "lab" / "m"
    (model / ".git").mkdir(parents=True)
    (model / ".git" / "HEAD").write_text("x")
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(content_of(2))
    outside = tmp_path / "outside"
    outside.write_text("secret")
    (model / "link").symlink_to(outside)
    (model / "broken").symlink_to("nowhere")
    done = await bring(hub, tmp_path / "tree")
    assert sorted(line.partition(": ")[2] for line in done.left) == [
        "it is no file, or its link is broken", "its link leads outside",
    ]  # fmt: skip
    names = [each["path"] for each in (await client.get("/api/models/lab/m/tree/main")).json()]
    assert names == ["config.json", "model.safetensors"]
    (model / "config.json").write_text('{"changed": 1}')
    second = (await bring(hub, model, "lab/m")).repos[0].revisions[0]
    log = (await client.get("/api/models/lab/m/commits/main")).json()
    assert [each["id"] for each in log] == [second, done.repos[0].revisions[0]]
    assert (await client.get("/lab/m/resolve/main/config.json")).json() == {"changed": 1}


async def test_linked_files_are_one_and_read_only(inside: Inside, memory_folder: Path) -> None:
    hub, _ = inside
    folder = cache(memory_folder)
    assert (await bring(hub, folder, way="link")).linked == 1
    name = hashlib.sha256(content_of(1)).hexdigest()
    source, kept = folder / "models--org--tiny" / "blobs" / name, hub.layout.blob(name)
    assert source.stat().st_ino == kept.stat().st_ino
    assert stat.S_IMODE(kept.stat().st_mode) == 0o444
    assert source.read_bytes() == content_of(1)


def test_a_folder_without_models_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(UsageError, match="--repo namespace/name"):
        sources(tmp_path)
    with pytest.raises(UsageError, match="no name of a namespace"):
        sources(tmp_path, "../x")


def test_a_stock_client_reads_an_imported_revision_by_its_id(tmp_path: Path, sqlite_hub: HubProcess) -> None:
    """What huggingface_hub cached of one hub is brought into another one, and comes out as the same files."""
    from huggingface_hub import HfApi, snapshot_download

    api: Any = HfApi(endpoint=sqlite_hub.url, token=sqlite_hub.writer)
    api.create_repo("team/travels")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "m" / "w.bin").write_bytes(content_of(5))
    api.upload_folder(repo_id="team/travels", folder_path=tmp_path / "m")
    home = tmp_path / "first"
    before = Path(snapshot_download("team/travels", endpoint=sqlite_hub.url, cache_dir=home, token=sqlite_hub.writer))
    other = make_hub(tmp_path / "other")
    on_hub(other.settings, lambda hub: bring(hub, home))
    other.start()
    try:
        after = Path(
            snapshot_download(
                "team/travels",
                revision=before.name,
                endpoint=other.url,
                cache_dir=tmp_path / "second",
                token=other.reader,
            )
        )
    finally:
        other.stop()
    assert after.name == before.name
    links = {path.name: (os.readlink(before / path.name), os.readlink(path)) for path in after.iterdir()}
    assert set(links) >= {"config.json", "w.bin"}
    assert all(first == second for first, second in links.values()), "blobs have the same names in both caches"
    assert (after / "w.bin").read_bytes() == content_of(5)


def test_an_import_makes_the_hub_where_the_folder_is_empty_and_leaves_other_folders_alone(tmp_path: Path) -> None:
    asked = RegistryImport(source=cache(tmp_path), folder=tmp_path / "hub")
    first, second = asked.perform(Run(lambda event: None)), asked.perform(Run(lambda event: None))
    assert first.founder
    assert f"token create {first.founder}" in first.lines()[0]
    assert second.founder == ""
    assert [repo.new for repo in second.done.repos] == [False]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(MissingError, match="there is no hub"):
        RegistryImport(source=tmp_path / "cache", folder=tmp_path / "mine").perform(Run(lambda event: None))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


async def test_one_odd_entry_is_left_out_with_its_reason_and_the_rest_comes(inside: Inside, tmp_path: Path) -> None:
    hub, client = inside
    folder = cache(tmp_path)
    snapshot = folder / "models--org--tiny" / "snapshots" / COMMIT
    (snapshot / "loop").symlink_to("pool")
    (snapshot / "pool").symlink_to("loop")
    (snapshot / "CONFIG.json").write_text("{}")
    (snapshot / os.fsdecode(b"b\xff")).write_text("x")
    (snapshot.parent / ("e" * 40)).symlink_to("/")
    (folder / "models--org----bad name").mkdir()
    for name in ("models--.org--x", "models--api--x"):
        (folder / name / "snapshots" / COMMIT).mkdir(parents=True)
    done = await bring(hub, folder)
    assert [repo.name for repo in done.repos] == ["org/tiny"]
    left = "\n".join(done.left)
    for entry, why in {
        "/loop": "link is broken",
        "config.json": "only in its case",
        "b?": "not UTF-8",
        "e" * 40: "is no folder",
        "bad name": "is no name",
        "models--.org--x": "is no name",
        "models--api--x": "is a word of this hub's addresses",
    }.items():
        assert re.search(f"{re.escape(entry)}.*{why}", left), (entry, why, left)
    assert (await client.get("/org/tiny/resolve/main/deep/w.bin")).content == content_of(1)


async def test_files_that_differ_only_in_their_case_do_not_end_an_import(inside: Inside, tmp_path: Path) -> None:
    model = tmp_path / "models" / "org" / "twins"
    (model / "Sub").mkdir(parents=True)
    (model / "sub").mkdir()
    for name in ("config.json", "Sub/a", "sub/b", "tokenizer.json"):
        (model / name).write_text("{}")
    done = await bring(inside[0], tmp_path / "models")
    assert [repo.files for repo in done.repos] == [1]
    assert done.left == ("twins/sub/b: it differs from Sub only in its case",)
    listed = (await inside[1].get("/api/models/org/twins/tree/main?recursive=1")).json()
    assert {each["path"] for each in listed if each["type"] == "file"} == {"config.json", "tokenizer.json", "Sub/a"}
