"""The manifest: read, refused by sentence, sealed, and pinned as a schema."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_toys import built_on, manifest_of
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.codec import encode
from hfbench.engines.form import schema_of
from hfbench.engines.manifest import (
    MANIFEST,
    SCHEMA,
    Layout,
    Manifest,
    ManifestError,
    Proof,
    ShapeProfile,
    Source,
    engine_folder,
    fingerprint,
    manifest_from,
    read_manifest,
    read_told,
    recipe_of,
    seal_of,
    with_proof,
    write_manifest,
)
from hfbench.text import printable

PINNED = Path(__file__).with_name("golden") / "manifest.schema.json"

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path)
    write_manifest(tmp_path, manifest)
    told = read_told(tmp_path)
    assert told.sealed
    assert replace(told.manifest, seal="") == manifest
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, "model.pt2"])


def test_an_edit_by_hand_breaks_the_seal(tmp_path: Path) -> None:
    path = write_manifest(tmp_path, manifest_of(tmp_path))
    path.write_text(path.read_text().replace('"dtype": "fp32"', '"dtype": "bf16"', 1))
    told = read_told(tmp_path)
    assert not told.sealed
    assert told.manifest.dtype == "bf16"


def test_an_added_key_is_left_out_and_breaks_the_seal(tmp_path: Path) -> None:
    path = write_manifest(tmp_path, manifest_of(tmp_path))
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"later": 1}))
    assert not read_told(tmp_path).sealed


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"schema": SCHEMA + 1}, f"schema {SCHEMA + 1}, this hfbench reads up to {SCHEMA}. Use a newer hfbench"),
        ({"schema": 10**60}, "Use a newer hfbench"),
        ({"schema": "1"}, "schema is '1', not a whole number"),
        ({"schema": True}, "schema is true, not a whole number"),
        ({"schema": 0}, "schema is 0, below 1"),
        ({"builder": "magic"}, "builder is 'magic', not one of aoti, compile, onnx, openvino, trtllm"),
        ({"created": "yesterday"}, "created is 'yesterday', not a UTC time"),
        ({"files": {}}, "files is an object, not a list"),
        ({"files": [{"name": "../x", "size": 1, "sha256": "0" * 64}]}, "files[0].name is '../x', not the name"),
        ({"files": [{"name": "/etc/passwd", "size": 1, "sha256": "0" * 64}]}, "files[0].name is '/etc/passwd'"),
        ({"files": [{"name": "x", "size": -1, "sha256": "0" * 64}]}, "files[0].size is -1, below 0"),
        ({"files": [{"name": "x", "size": 1, "sha256": "0" * 63 + "\n"}]}, "not 64 hexadecimal digits"),
        ({"built_on": None}, "built_on is null, not an object"),
        ({"built_on": {}}, "built_on.python is missing"),
        ({"built_on": {"python": "3.11", "gpu": {"name": "x", "compute_capability": "sm90"}}}, "built_on.gpu.compute"),
        ({"options": {"a": 1}}, "options['a'] is 1, not text"),
        ({"seconds": "long"}, "seconds is 'long', not a number"),
        ({"shapes": {"batch": 1, "min_prompt": 9, "max_prompt": 8, "context": 16}}, "do not grow in this order"),
        ({"layout": {"world_size": 0}}, "layout.world_size is 0, below 1"),
        ({"compat": {"hardware_level": "turing_plus"}}, "not one of ampere_plus, same_compute_capability"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, edit: dict[str, object], words: str) -> None:
    data = encode(manifest_of(tmp_path)) | edit
    with pytest.raises(ManifestError) as caught:
        manifest_from(data)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"{", "the text ends too early"),
        (b"[]", "the root is a list"),
        (b"\xff\xfe{}", "UTF-16"),
        (b'{"schema": 1, "x": ' + b"[" * 900 + b"]" * 900 + b"}", "nested too deeply"),
        (b'{"schema": 1, "x": ' + b"[" * 20000, "nested too deeply"),
        (b"{}", "the manifest has no schema"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git-lfs"),
        (b"PK\x03\x04", "zip"),
    ],
)
def test_a_damaged_file_is_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(ManifestError) as caught:
        read_manifest(tmp_path)
    assert words in str(caught.value)
    assert MANIFEST in str(caught.value)


def test_a_fifo_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / MANIFEST)
    with pytest.raises(ManifestError, match="FIFO"):
        read_manifest(tmp_path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    write_manifest(tmp_path / "outside", manifest_of(tmp_path / "outside"))
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / MANIFEST).symlink_to(tmp_path / "outside" / MANIFEST)
    with pytest.raises(ManifestError, match="not followed"):
        read_manifest(inside)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_edit_of_one_field_is_read_or_is_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = json.loads(json.dumps(encode(manifest_of(None))))
    node = whole
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        node[key] = data.draw(ANY_JSON)
        break
    sentence = ""
    try:
        assert isinstance(manifest_from(whole), Manifest)
    except ManifestError as error:
        sentence = str(error)
    assert printable(sentence) == sentence
    assert len(sentence) < 600


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=64) | ANY_JSON.map(lambda value: json.dumps(value).encode()))
def test_any_file_is_read_or_is_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(ManifestError):
        read_manifest(folder)


def test_the_seal_covers_every_other_field(tmp_path: Path) -> None:
    data = encode(manifest_of(tmp_path))
    assert seal_of(data) == seal_of(data | {"seal": "x"})
    assert len({seal_of(data | {name: "other"}) for name in data if name != "seal"}) == len(data) - 1


def test_the_fingerprint_is_of_what_determines_the_engine(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path)
    again = replace(with_proof(manifest, Proof(verdict="proven")), created="2027-01-01T00:00:00Z", seconds=9.0)
    assert fingerprint(again) == fingerprint(manifest)
    assert fingerprint(replace(manifest, dtype="bf16")) != fingerprint(manifest)


def test_the_fingerprint_does_not_depend_on_where_the_engine_was_put(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path)
    elsewhere = replace(manifest, argv=("hfbench", "engine", "build", "--out", "other"))
    assert fingerprint(elsewhere) == fingerprint(manifest)


def test_every_build_of_a_recipe_has_its_fingerprint_on_any_machine(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path)
    other = manifest_of(None, built_on=built_on(torch="2.14.0", driver="590.1"), options={"cpp.simdlen": "None"})
    again = replace(other, created="2027-01-01T00:00:00Z", argv=(), files=(), source=replace(other.source, given="y"))
    assert recipe_of(again) == recipe_of(manifest) == recipe_of(replace(manifest, options={"attention": "sdpa"}))


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "bf16"},
        {"builder": "compile"},
        {"shapes": ShapeProfile(batch=2, min_prompt=1, max_prompt=8, context=16)},
        {"layout": Layout(world_size=2, tp=2)},
        {"built_on": built_on(gpu=None)},
        {"options": {"attention": "eager"}},
        {"source": Source(given="./model", config_sha256="a" * 64)},
    ],
)
def test_another_recipe_has_another_fingerprint(tmp_path: Path, change: dict[str, Any]) -> None:
    manifest = manifest_of(tmp_path)
    assert recipe_of(replace(manifest, **change)) != recipe_of(manifest)


def test_an_engine_is_found_by_its_folder_its_manifest_or_its_file(tmp_path: Path) -> None:
    assert engine_folder(tmp_path) is None
    write_manifest(tmp_path, manifest_of(tmp_path))
    assert {engine_folder(tmp_path / name) for name in (".", MANIFEST, "model.pt2")} == {tmp_path}
    assert engine_folder(tmp_path / "none") is None


def test_a_manifest_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="builder"):
        write_manifest(tmp_path, replace(manifest_of(tmp_path), builder="magic"))
    assert not (tmp_path / MANIFEST).exists()


def test_the_schema_is_the_pinned_one() -> None:
    """After an intended change: raise SCHEMA if old readers would misread it, then write the file anew."""
    made = json.dumps(schema_of(Manifest, "Manifest of an hfbench engine"), indent=1) + "\n"
    assert made == PINNED.read_text()
