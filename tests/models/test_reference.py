"""References: where each leads, and which of the ways to lead nowhere it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hfbench.errors import UsageError
from hfbench.models.reference import NotCached, NotFound, cache_folder, resolve

COMMIT = "1" * 40


def test_a_folder_is_local(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(single.parent)
    for text in ("single", "./single", str(single), "single/"):
        location = resolve(text)
        assert (location.source, location.repo, location.name) == ("local", None, "single")
        assert location.folder.samefile(single)


def test_a_tilde_is_the_home_folder(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(single.parent))
    assert resolve("~/single").folder == single


@pytest.mark.parametrize("text", ["org/tiny", "org/tiny@main", "org/tiny@refs/pr/1", f"org/tiny@{COMMIT}"])
def test_a_repository_is_found_in_the_cache(cache: Path, text: str) -> None:
    (cache / "models--org--tiny" / "refs" / "refs" / "pr").mkdir(parents=True)
    (cache / "models--org--tiny" / "refs" / "refs" / "pr" / "1").write_text(COMMIT)
    location = resolve(text, cache_dir=cache)
    assert (location.source, location.repo, location.commit, location.name) == ("cache", "org/tiny", COMMIT, "org/tiny")
    assert (location.folder / "config.json").is_file()


def test_a_local_folder_wins_over_the_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "tiny").mkdir(parents=True)
    (tmp_path / "org" / "tiny" / "config.json").write_text("{}")
    assert resolve("org/tiny", cache_dir=cache).source == "local"


def test_a_revision_that_is_not_cached_tells_those_that_are(cache: Path) -> None:
    with pytest.raises(NotCached, match=r"'v2' is not in the cache.*main"):
        resolve("org/tiny@v2", cache_dir=cache)
    (cache / "models--org--tiny" / "refs" / "main").unlink()
    with pytest.raises(NotCached, match=f"'main' is not in the cache.*{COMMIT}"):
        resolve("org/tiny", cache_dir=cache)


@pytest.mark.parametrize("content", ["../../../etc", "2" * 40, "", "é" * 40, COMMIT[:7]])
def test_a_ref_that_means_no_snapshot_is_not_followed(cache: Path, content: str) -> None:
    (cache / "models--org--tiny" / "refs" / "main").write_text(content)
    with pytest.raises(NotCached):
        resolve("org/tiny", cache_dir=cache)


def test_a_repository_that_is_not_cached_names_the_cache(cache: Path) -> None:
    with pytest.raises(NotCached) as caught:
        resolve("org/other", cache_dir=cache)
    assert str(cache) in caught.value.found
    assert (caught.value.repo, caught.value.revision) == ("org/other", "main")


def test_ways_to_lead_nowhere_are_told_apart(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(single.parent)
    with pytest.raises(NotFound, match=r"no such folder\. Did you mean 'single'"):
        resolve("./singel")
    with pytest.raises(UsageError, match=r"none of weights\. Give the folder: .*single"):
        resolve("single/config.json")
    (single.parent / "empty").mkdir()
    with pytest.raises(NotFound, match="is empty"):
        resolve("empty")
    (single.parent / "gone").symlink_to("nowhere")
    with pytest.raises(NotFound, match="leads to nothing"):
        resolve("gone")


def test_a_file_of_weights_and_an_index_stand_for_their_folder(single: Path) -> None:
    (single / "model.safetensors.index.json").write_text("{}")
    shard, index = resolve(str(single / "model.safetensors")), resolve(str(single / "model.safetensors.index.json"))
    assert (shard.folder, shard.only, index.folder, index.only) == (single, "model.safetensors", single, "")
    assert shard.note
    assert index.note
    assert not resolve(str(single)).note


def test_the_folder_of_a_cached_repository_stands_for_main(cache: Path) -> None:
    location = resolve(str(cache / "models--org--tiny"))
    assert (location.source, location.repo, location.commit) == ("cache", "org/tiny", COMMIT)
    assert location.folder == resolve("org/tiny", cache_dir=cache).folder


def test_a_cache_is_no_model(cache: Path) -> None:
    with pytest.raises(NotFound, match=r"a Hugging Face cache of 1 model.*org/tiny --cache-dir"):
        resolve(str(cache))


@pytest.mark.timeout(20)
def test_a_ref_that_is_a_fifo_holds_nobody(cache: Path) -> None:
    (cache / "models--org--tiny" / "refs" / "main").unlink()
    os.mkfifo(cache / "models--org--tiny" / "refs" / "main")
    with pytest.raises(NotCached):
        resolve("org/tiny", cache_dir=cache)


def test_a_ref_is_taken_to_the_letter(cache: Path) -> None:
    (cache / "models--org--tiny" / "refs" / "main").write_text(COMMIT + "\n")
    with pytest.raises(NotCached, match=f"line break.*Write {COMMIT}"):
        resolve("org/tiny", cache_dir=cache)


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "org/name@", "org/name@../x", "org/name@a b"])
def test_what_is_no_reference_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        resolve(text)


@pytest.mark.parametrize("text", ["a/b/c", "-x/../y", "org/name with space", "x" * 5000, "../" * 50 + "etc/nothing"])
def test_odd_references_are_one_sentence(text: str) -> None:
    with pytest.raises(NotFound) as caught:
        resolve(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HF_HUB_CACHE": "/a"}, "/a"),
        ({"HF_HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/h/hub"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"),
        ({"HF_HUB_CACHE": "/a", "HF_HOME": "/h"}, "/a"),
    ],
)
def test_the_cache_is_where_the_hub_library_keeps_it(environment: dict[str, str], folder: str) -> None:
    assert cache_folder(environment) == Path(folder)


def test_the_cache_of_the_environment_is_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    assert resolve("org/tiny").commit == COMMIT


@pytest.mark.unprivileged
def test_a_folder_that_may_not_be_read_says_so(single: Path) -> None:
    single.chmod(0)
    with pytest.raises(NotFound, match="cannot be read"):
        resolve(str(single))
