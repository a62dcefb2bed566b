"""Models opened lately: a list that survives damage and may fail without harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfbench.screens.recent import MOST, read_recent, recent_file, remember


def test_the_latest_comes_first_and_each_once(home: Path) -> None:
    assert read_recent() == []
    for reference in ("a/b", "/models/x", "a/b"):
        assert remember(reference)
    assert read_recent() == ["a/b", "/models/x"]
    assert recent_file().is_relative_to(home)


def test_the_list_stays_short(tmp_path: Path) -> None:
    file = tmp_path / "recent.json"
    for number in range(MOST + 5):
        remember(f"org/model-{number}", file)
    assert len(read_recent(file)) == MOST
    assert [each.name for each in tmp_path.iterdir()] == ["recent.json"]


@pytest.mark.parametrize("raw", [b"", b"{", b'{"a": 1}', b"\xff\xfe", b"[" * 100_000, b'[1, null, "", "ok"]'])
def test_a_damaged_file_is_taken_for_what_it_still_says(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "recent.json"
    file.write_bytes(raw)
    assert read_recent(file) in ([], ["ok"])
    assert remember("org/new", file)
    assert read_recent(file)[0] == "org/new"


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not remember("org/name", tmp_path / "file" / "recent.json")
    (tmp_path / "folder").mkdir()
    assert not remember("org/name", tmp_path / "folder")
    assert read_recent(tmp_path / "folder") == []


def test_bytes_that_are_not_utf8_come_back_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "recent.json"
    assert remember("/models/\udcff", file)
    assert read_recent(file) == ["/models/\udcff"]
