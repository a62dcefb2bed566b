"""What a target may be: a folder, a reference, a cache folder, a file; and what is said when it is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cases_target import cached
from small_model import POSSIBLE_COMMIT, make

from hfbench.checks.run import Report, check
from hfbench.errors import UsageError


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A Hugging Face cache with org/tiny at main, whose files are links to blobs."""
    return cached(tmp_path)


def ids(report: Report) -> list[str]:
    return [each.id for each in report.findings]


def test_a_folder_is_judged(model: Path) -> None:
    report = check(str(model))
    assert (report.model, report.verdict, report.findings) == ("model", "ok", ())


def test_a_cached_repository_is_judged(cache: Path) -> None:
    report = check("org/tiny", cache_dir=cache)
    assert (report.model, report.verdict, ids(report)) == ("org/tiny", "ok", [])


def test_a_cached_repository_is_judged_by_its_folder(cache: Path) -> None:
    report = check(str(cache / "models--org--tiny"))
    assert (report.model, report.verdict, ids(report)) == ("org/tiny", "ok", [])


def test_a_repository_cached_by_commit_only_is_refused_and_the_commit_offered(cache: Path) -> None:
    (cache / "models--org--tiny" / "refs" / "main").unlink()
    for target in ("org/tiny", str(cache / "models--org--tiny")):
        report = check(target, cache_dir=cache)
        assert (report.verdict, ids(report)) == ("refuse", ["HB804"])
        assert POSSIBLE_COMMIT in report.findings[0].remedy
    assert check(f"org/tiny@{POSSIBLE_COMMIT}", cache_dir=cache).verdict == "ok"


def test_an_unfinished_download_is_told(cache: Path) -> None:
    (cache / "models--org--tiny" / "blobs" / "abc.incomplete").write_bytes(b"x")
    assert ids(check("org/tiny", cache_dir=cache)) == ["HB806"]


def test_a_cleaned_blob_is_a_broken_link(cache: Path) -> None:
    (cache / "models--org--tiny" / "blobs" / "model.safetensors").unlink()
    report = check("org/tiny", cache_dir=cache)
    assert (report.verdict, ids(report)) == ("refuse", ["HB132"])


def test_what_is_nowhere_is_said_apart_from_what_is_not_cached(cache: Path, tmp_path: Path) -> None:
    assert ids(check(str(tmp_path / "gone"))) == ["HB801"]
    assert ids(check("org/other", cache_dir=cache)) == ["HB803"]
    assert not check("org/other", cache_dir=cache).judged


def test_a_local_folder_in_place_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    (tmp_path / "org" / "name" / "README.md").write_text("x")
    make(tmp_path / "org" / "tiny")
    report = check("org/name")
    assert (report.verdict, ids(report)) == ("refuse", ["HB805"])
    assert "README.md" in report.findings[0].message
    assert ids(check("org/tiny")) == []
    assert ids(check("./org/tiny")) == []
    hub = tmp_path / "hub"
    (hub / "models--org--tiny").mkdir(parents=True)
    report = check("org/tiny", cache_dir=hub)
    assert (report.verdict, ids(report)) == ("ok", ["HB805"])
    assert "which is in the cache" in report.findings[0].message


def test_a_single_file_is_judged_by_its_structure_alone(model: Path) -> None:
    (model / "config.json").unlink()
    report = check(str(model / "model.safetensors"))
    assert (report.verdict, report.findings) == ("ok", ())


def test_an_index_stands_for_its_folder(model: Path) -> None:
    index = model / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"x": "../x.safetensors"}}')
    assert "HB141" in ids(check(str(index)))


def test_a_fifo_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    assert ids(check(str(tmp_path / "model.safetensors"))) == ["HB131"]


@pytest.mark.parametrize("target", ["", "  ", "a\0b", "config.json"])
def test_what_can_be_no_model_is_a_wrong_request(target: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model)
    with pytest.raises(UsageError):
        check(target)


@pytest.mark.unprivileged
def test_a_folder_that_may_be_listed_and_not_entered_is_judged_by_its_list(model: Path) -> None:
    model.chmod(0o444)
    try:
        report = check(str(model))
    finally:
        model.chmod(0o755)
    assert report.verdict == "refuse"
    assert {(each.file, each.message) for each in report.findings} >= {
        ("model.safetensors", "cannot be looked at (Permission denied)"),
        ("config.json", "cannot be looked at (Permission denied)"),
    }
