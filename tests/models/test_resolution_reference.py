"""Resolution: from a reference to a folder, told step by step."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hfbench.models.resolution.resolve import Resolution, trace_model
from hfbench.models.resolution.trace import Step


def step(found: Resolution, name: str) -> Step:
    return next(each for each in found.steps if each.step == name)


def test_a_local_folder_is_taken_and_nothing_else_is_asked(single: Path) -> None:
    found = trace_model(str(single))
    assert step(found, "local path").state == "ok"
    assert step(found, "cache").state == step(found, "hub").state == "skipped"
    assert found.runtimes["transformers"].loads
    assert found.runtimes["vllm"].loads


def test_a_local_folder_shadows_the_repository_of_its_name(
    single: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    shutil.copytree(single, tmp_path / "org" / "tiny")
    found = trace_model("org/tiny", cache_dir=cache)
    assert found.location is not None
    assert found.location.source == "local"
    assert step(found, "local path").state == "warning"
    assert "shadows the Hub repository 'org/tiny', which is in the cache" in step(found, "local path").why


def test_a_shadowing_folder_without_configuration_says_so_in_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    (tmp_path / "org" / "name" / "README.md").write_text("notes")
    reason = trace_model("org/name").runtimes["transformers"].reason
    assert "no config.json" in reason
    assert "it holds 'README.md'" in reason
    assert "shadows the Hub repository" in reason


def test_a_cached_repository_tells_its_ref_and_its_known_absent_files(cache: Path) -> None:
    absent = cache / "models--org--tiny" / ".no_exist" / ("1" * 40)
    absent.mkdir(parents=True)
    (absent / "tokenizer_config.json").touch()
    found = trace_model("org/tiny", cache_dir=cache)
    told = step(found, "cache")
    assert "refs/main says 111111111111" in told.found
    assert told.details["absent"] == ["tokenizer_config.json"]
    assert step(found, "local path").found == "nothing is there"
    assert found.runtimes["vllm"].loads


def test_a_snapshot_without_a_ref_is_not_found_and_the_commit_is_offered(cache: Path) -> None:
    (cache / "models--org--tiny" / "refs" / "main").unlink()
    found = trace_model("org/tiny", cache_dir=cache, offline=True)
    assert found.location is None
    assert step(found, "cache").state == "error"
    assert "a snapshot fetched by commit has no branch" in step(found, "cache").found
    assert all(not verdict.loads and "1" * 40 in verdict.reason for verdict in found.runtimes.values())


@pytest.mark.parametrize("reference", ["org/absent", "absent"])
def test_a_repository_that_is_not_cached_is_told_as_that(reference: str, tmp_path: Path) -> None:
    found = trace_model(reference, cache_dir=tmp_path)
    assert "not in the cache" in step(found, "cache").found
    assert step(found, "hub").state == "note"
    assert found.loads_nowhere


def test_the_environment_can_forbid_the_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE forbids" in step(trace_model("org/absent", cache_dir=tmp_path), "hub").found


def test_a_weight_file_in_place_of_the_folder_is_told(single: Path) -> None:
    found = trace_model(str(single / "model.safetensors"))
    told = step(found, "local path")
    assert (told.state, told.found) == ("warning", "a file")
    assert str(single) in told.why
    assert found.location
    assert found.location.folder == single


def test_another_file_in_place_of_the_folder_is_told(single: Path) -> None:
    found = trace_model(str(single / "config.json"))
    assert step(found, "local path").state == "error"
    assert "Give the folder" in found.runtimes["vllm"].reason


@pytest.mark.parametrize(
    "reference", ["", "   ", "\0", "a\0b", "../nowhere/x", "x" * 5000, "org/name@../../etc", "~nobody/x"]
)
def test_odd_references_end_in_steps_and_not_in_exceptions(reference: str, tmp_path: Path) -> None:
    found = trace_model(reference, cache_dir=tmp_path)
    assert found.loads_nowhere
    assert all(each.looked_at.isprintable() and each.found.isprintable() for each in found.steps)


def test_an_empty_folder_says_it_is_empty(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "the folder is empty" in trace_model(str(empty)).runtimes["vllm"].reason
