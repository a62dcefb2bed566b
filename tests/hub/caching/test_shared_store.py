"""The store in which stock clients keep a content once for all repositories of a cache."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest
from huggingface_hub.utils import _shared_blobs as stock
from small_hub_model import CONFIG, safetensors

from hfbench.hub.caching.free import Freeing
from hfbench.hub.caching.read import read_cache
from hfbench.hub.caching.verify import verified
from hfbench.jobs.run import Run
from hfbench.models.checkpoint import read_shards
from hfbench.models.inventory.inventory import take_inventory
from hfbench.models.reference import resolve

WEIGHTS = safetensors({"w": [64, 64]})
ETAG, XET = hashlib.sha256(WEIGHTS).hexdigest(), "ab" + "0" * 62
COMMIT = "a" * 40
REPOS = ("models--org--one", "models--org--two")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Two repositories with the same weights, put into the store by the stock client itself."""
    folder = tmp_path / "hub"
    for name in REPOS:
        top = folder / name
        for each in (top / "blobs", top / "refs", top / "snapshots" / COMMIT):
            each.mkdir(parents=True)
        (top / "refs" / "main").write_text(COMMIT)
        blob = top / "blobs" / ETAG
        blob.write_bytes(WEIGHTS)
        assert stock.publish_blob_to_shared_store(
            blob_path=str(blob), xet_hash=XET, cache_dir=folder, expected_size=len(WEIGHTS)
        )
        (top / "snapshots" / COMMIT / "model.safetensors").symlink_to(f"../../blobs/{ETAG}")
        (top / "snapshots" / COMMIT / "config.json").write_text(str(CONFIG).replace("'", '"').replace("False", "false"))
    content = folder / "blobs" / "ab" / XET
    os.utime(content, (time.time() - 1000,) * 2)
    return folder


def free(cache: Path, repo: str) -> int:
    freeing = Freeing(cache, dry_run=False)
    freeing.model(repo)
    return sum(each.bytes for each in freeing.tally.freed)


def test_a_model_whose_weights_lie_in_the_store_is_read_and_its_hash_is_known(cache: Path) -> None:
    location = resolve("org/one", cache_dir=cache)
    assert [each.problem for each in read_shards(location.folder)] == [None]
    entry = next(each for each in take_inventory(location).files if each.name == "model.safetensors")
    assert (entry.problem, entry.bytes, entry.blob) == ("", len(WEIGHTS), ETAG)
    assert entry.expected is not None
    assert entry.expected.digest == ETAG


def test_shared_contents_are_counted_once(cache: Path) -> None:
    report = read_cache(cache)
    assert report.store is not None
    assert (report.store.contents, report.store.bytes, report.store.unused_bytes) == (1, len(WEIGHTS), 0)
    assert [each.store_bytes for each in report.repos] == [len(WEIGHTS)] * 2
    assert report.bytes == sum(each.bytes for each in report.repos) - len(WEIGHTS)
    assert verified(report, Run()).damaged == ()


def test_a_content_goes_with_the_last_repository_that_uses_it(cache: Path) -> None:
    content = cache / "blobs" / "ab" / XET
    assert free(cache, "org/one") < 2000
    assert content.read_bytes() == WEIGHTS
    assert free(cache, "org/two") > len(WEIGHTS)
    assert not content.exists()
    assert not content.with_name(f"{XET}.refs").exists()


def test_a_content_that_no_repository_links_to_is_an_orphan(cache: Path) -> None:
    for name in REPOS:
        (cache / name / "blobs" / ETAG).unlink()
    report = read_cache(cache)
    assert report.store is not None
    assert report.store.unused_bytes == len(WEIGHTS)
    told = Freeing(cache, dry_run=True)
    told.orphans()
    assert [each.bytes for each in told.tally.freed] == [len(WEIGHTS)]
    Freeing(cache, dry_run=False).orphans()
    assert not (cache / "blobs" / "ab" / XET).exists()


def test_the_store_of_another_cache_is_left_alone(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "blobs" / "ab" / XET
    outside.parent.mkdir(parents=True)
    (outside.parent.parent / ".huggingface-shared-blobs").write_text("1\n")
    outside.write_bytes(b"mine")
    os.utime(outside, (time.time() - 1000,) * 2)
    link = cache / REPOS[0] / "blobs" / ("c" * 64)
    link.symlink_to(outside)
    before = read_cache(cache).bytes
    Freeing(cache, dry_run=False).orphans()
    assert free(cache, "org/one") < before
    assert outside.read_bytes() == b"mine"
