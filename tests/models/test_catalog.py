"""Lists of models: cheap, complete, and tolerant of every broken folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hfbench.engines.manifest import MANIFEST
from hfbench.models.catalog import describe, is_engine, is_model, list_cache, list_local
from hfbench.models.reference import NotFound
from hfbench.models.summary import summarise


def test_models_are_found_at_in_and_below_a_root(single: Path, sharded: Path, tmp_path: Path) -> None:
    root = tmp_path / "models"
    shutil.copytree(single, root / "one")
    shutil.copytree(sharded, root / "org" / "two")
    (root / "empty").mkdir()
    (root / "notes.txt").write_text("x")
    assert [entry.name for entry in list_local([root])] == ["one", "org/two"]
    assert [entry.name for entry in list_local([root / "one", root])] == ["one", "org/two"]
    assert list_local([tmp_path / "nowhere"]) == []


def test_listing_opens_nothing_and_describing_tells_all(single: Path) -> None:
    [entry] = list_local([single])
    assert (entry.type, entry.parameters, entry.state) == (None, None, "")
    assert entry.bytes == sum(each.stat().st_size for each in single.iterdir())
    told = describe(entry)
    assert (told.type, told.parameters, told.state, told.problem) == ("llama", 328, "ok", "")


def test_a_megatron_checkpoint_is_one_entry_and_no_broken_model(single: Path, tmp_path: Path) -> None:
    folder = tmp_path / "root" / "mg"
    shutil.copytree(single, folder / "hf")
    rank = folder / "release" / "mp_rank_00"
    rank.mkdir(parents=True)
    (rank / "model_optim_rng.pt").write_bytes(bytes(1000))
    (folder / "latest_checkpointed_iteration.txt").write_text("release")
    [entry] = list_local([tmp_path / "root"])
    told = describe(entry)
    assert (told.name, told.type, told.state, told.problem) == ("mg", "Megatron", "ok", "")
    assert told.bytes > 1000
    with pytest.raises(NotFound, match=r"this is a Megatron checkpoint.*hfbench convert hf"):
        summarise(folder)


def test_states_follow_the_severest_problem(single: Path, sharded: Path) -> None:
    (sharded / "model-00002-of-00002.safetensors").unlink()
    [broken] = list_local([sharded])
    assert describe(broken).state == "x"
    assert "missing" in describe(broken).problem
    (single / "second.safetensors").write_bytes((single / "model.safetensors").read_bytes())
    [warned] = list_local([single])
    assert describe(warned).state == "!"


@pytest.mark.timeout(20)
def test_broken_folders_are_listed_and_described_without_an_exception(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("fifo", "gone", "loop", "list"):
        (root / name).mkdir(parents=True)
    os.mkfifo(root / "fifo" / "config.json")
    (root / "gone" / "model.safetensors").symlink_to("nowhere")
    (root / "loop" / "config.json").symlink_to("config.json")
    (root / "list" / "config.json").write_text("[]")
    entries = list_local([root])
    assert [entry.name for entry in entries] == ["fifo", "gone", "list", "loop"]
    assert {describe(entry).state for entry in entries} == {"x"}


def test_a_folder_that_vanishes_between_listing_and_describing_is_told(single: Path) -> None:
    [entry] = list_local([single])
    shutil.rmtree(single)
    assert describe(entry).state == "x"


def test_the_cache_is_listed_by_repository(cache: Path) -> None:
    (cache / "models--org--half" / "snapshots").mkdir(parents=True)
    (cache / "datasets--org--data").mkdir()
    half, tiny = list_cache(cache)
    assert (half.name, half.state) == ("org/half", "x")
    assert describe(half) == half
    assert (tiny.name, tiny.source, tiny.reference) == ("org/tiny", "cache", "org/tiny")
    assert (describe(tiny).state, describe(tiny).parameters) == ("ok", 328)


def test_a_repository_cached_by_commit_is_meant_by_its_commit(cache: Path) -> None:
    (cache / "models--org--tiny" / "refs" / "main").unlink()
    [entry] = list_cache(cache)
    assert entry.reference == f"org/tiny@{'1' * 40}"


def test_no_cache_is_an_empty_list(tmp_path: Path) -> None:
    assert list_cache(tmp_path / "nowhere") == []


def test_a_folder_is_a_model_by_its_names_alone(tmp_path: Path) -> None:
    assert not is_model(tmp_path)
    (tmp_path / "q4.gguf").touch()
    assert is_model(tmp_path)


def test_an_engine_beside_its_weights_is_no_model(single: Path, tmp_path: Path) -> None:
    engine = tmp_path / "engines" / "mine"
    shutil.copytree(single, engine)
    (engine / MANIFEST).write_text("{}")
    assert is_engine(engine)
    assert not is_model(engine)
    assert list_local([tmp_path / "engines", engine]) == []
