"""What a hub says is read into records that can be trusted, or refused, whatever it is."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_hub_model import safetensors

from hfbench.hub.facts import COMMIT, BadAnswer, HubFile, checked_path, read_file, read_info, read_refs
from hfbench.hub.headers import FIRST, header_of

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
entry = st.fixed_dictionaries(
    {"path": st.text(max_size=12) | json, "size": json},
    optional={"type": st.sampled_from(["file", "directory"]), "oid": json, "lfs": json},
)


@given(json | entry)
def test_any_entry_of_a_tree_is_a_file_a_folder_or_refused(data: object) -> None:
    try:
        file = read_file(data)
    except BadAnswer:
        return
    if file is not None:
        assert file.size >= 0
        assert os.path.normpath(f"/model/{file.path}") == f"/model/{file.path}"


@given(st.text(max_size=20))
def test_a_path_that_is_taken_stays_below_its_folder(text: str) -> None:
    try:
        path = checked_path(text)
    except BadAnswer:
        return
    assert os.path.normpath(f"/model/{path}").startswith("/model/")
    assert ".." not in PurePosixPath(path).parts


@given(json | st.fixed_dictionaries({"sha": st.from_regex(COMMIT) | json, "gated": json, "private": json}))
def test_any_info_has_a_commit_or_is_refused(data: object) -> None:
    try:
        info = read_info(data)
    except BadAnswer:
        return
    assert COMMIT.fullmatch(info.commit)
    assert info.gated in ("", "auto", "manual")


@given(json)
def test_any_refs_are_names_of_commits_or_refused(data: object) -> None:
    try:
        refs = read_refs({"branches": data, "tags": [{"name": "v1", "targetCommit": "a" * 40}, {"name": "bad"}]})
    except BadAnswer:
        return
    assert refs.tags == {"v1": "a" * 40}
    assert all(COMMIT.fullmatch(commit) for commit in refs.branches.values())


@pytest.mark.parametrize("note", [0, 10, FIRST - 200, FIRST, 3 * FIRST])
def test_a_header_comes_in_two_requests_at_most_and_whole(note: int) -> None:
    raw = safetensors({"w": [64, 64]}, metadata={"note": "x" * note})
    asked = []

    def fetch(start: int, end: int) -> bytes:
        asked.append((start, end))
        return raw[start:end]

    found = header_of(HubFile("model.safetensors", len(raw)), fetch)
    assert found == raw[: 8 + int.from_bytes(raw[:8], "little")]
    assert len(asked) == (2 if len(found) > FIRST else 1)


@given(st.binary(min_size=1, max_size=200))
def test_of_any_bytes_no_more_is_fetched_than_the_file_has(raw: bytes) -> None:
    for name in ("x.safetensors", "x.gguf"):

        def fetch(start: int, end: int) -> bytes:
            assert 0 <= start < end <= len(raw)
            return raw[start:end]

        assert raw.startswith(header_of(HubFile(name, len(raw)), fetch))
