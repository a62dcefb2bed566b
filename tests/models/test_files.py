"""Files of a folder: what is not a plain file is named and never opened."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from hfbench.errors import HfbenchError
from hfbench.models.files import kind_of, list_files, open_regular, read_bytes, read_text
from hfbench.models.problem import ModelError


def test_files_are_listed_by_name_with_size_and_kind(single: Path) -> None:
    (single / "sub").mkdir()
    (single / "sub" / "tokenizer.model").write_bytes(b"12345")
    listed = [(each.name, each.kind, each.bytes) for each in list_files(single)]
    assert listed == [
        ("config.json", "config", (single / "config.json").stat().st_size),
        ("model.safetensors", "weights", (single / "model.safetensors").stat().st_size),
        ("sub/tokenizer.model", "tokenizer", 5),
    ]
    assert [each.name for each in list_files(single, deep=False)] == ["config.json", "model.safetensors"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("model.safetensors.index.json", "index"),
        ("pytorch_model.bin", "weights"),
        ("training_args.bin", "other"),
        ("tokenizer_config.json", "tokenizer"),
        ("generation_config.json", "config"),
        ("modeling_x.py", "code"),
        ("README.md", "other"),
    ],
)
def test_a_kind_is_told_by_the_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def special(folder: Path, kind: str) -> Path:
    path = folder / "model.safetensors"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            os.chdir(folder)
            listening.bind(path.name)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "loop":
        path.symlink_to("model.safetensors")
    elif kind == "escape":
        outside = folder.parent / "secret"
        outside.write_text("secret")
        path.symlink_to(outside)
    return path


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("fifo", "not_regular"),
        ("folder", "not_regular"),
        ("socket", "not_regular"),
        ("device", "link_escape"),
        ("dangling", "broken_symlink"),
        ("loop", "broken_symlink"),
        ("escape", "link_escape"),
        ("missing", "missing"),
    ],
)
@pytest.mark.timeout(10)
def test_what_is_no_plain_file_of_the_folder_is_not_opened(
    tmp_path: Path, kind: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "m"
    folder.mkdir()
    path = special(folder, kind)
    with pytest.raises(ModelError) as caught:
        open_regular(path)
    assert caught.value.code == code
    listed = list_files(folder)
    assert [each.code for each in listed] == ([] if kind == "missing" else [code])


def test_links_inside_the_folder_and_into_a_cache_are_followed(cache: Path, single: Path) -> None:
    snapshot = cache / "models--org--tiny" / "snapshots" / ("1" * 40)
    assert read_text(snapshot / "config.json", 10_000) == (single / "config.json").read_text()
    (single / "again.json").symlink_to("config.json")
    assert read_bytes(single / "again.json", 10_000) == (single / "config.json").read_bytes()


def test_a_file_over_the_limit_is_refused(single: Path) -> None:
    with pytest.raises(ModelError, match="more than the 10 that"):
        read_bytes(single / "config.json", 10)


def test_names_that_are_not_utf8_are_listed_and_safe_to_print(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff.bin")).write_bytes(b"x")
    [listed] = list_files(tmp_path)
    assert (listed.kind, listed.bytes) == ("weights", 1)


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HfbenchError, match="cannot be read"):
        list_files(tmp_path / "nowhere")


def test_a_link_to_a_folder_is_listed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "a.json").write_text("{}")
    assert [(each.name, each.code) for each in list_files(tmp_path)] == [("a.json", ""), ("up", "link_escape")]
