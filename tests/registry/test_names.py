"""Names and paths: nothing that escapes, confuses or cannot be held by other machines."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.registry.errors import BadRequest
from hfbench.registry.names import check_name, check_ref, path_trouble, twins

BAD_PATHS = [
    "", "/etc/passwd", "../x", "a/../../x", "a/..", ".", "./x", "a//b", "a/", ".git/config", "x/.GIT/hooks", ".git. /x",
    "a\0b", "a\\b", "a\nb", "a\x7fb", "x" * 256, "é" * 128, "/".join(["x"] * 2049), "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_could_escape_or_confuse_is_refused(path: str) -> None:
    assert path_trouble(path)


@pytest.mark.parametrize("path", ["x", "a/b.txt", ".gitattributes", "..x", "a/...", "x" * 255, "ünïcode/模型.bin"])
def test_a_harmless_path_is_taken(path: str) -> None:
    assert path_trouble(path) == ""


@given(st.text(max_size=60))
def test_a_path_that_is_taken_stays_below_its_root(path: str) -> None:
    if path_trouble(path) == "":
        joined = posixpath.normpath(posixpath.join("/root", path))
        assert joined == f"/root/{path}"


@pytest.mark.parametrize(
    "name", ["", "-x", "x-", ".x", "a..b", "a--b", "x.git", "api", "Datasets", "a/b", "a b", "x" * 97]
)
def test_a_name_that_addresses_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(BadRequest):
        check_name(name, "repository")


@pytest.mark.parametrize(
    "name", ["", "-x", "a..b", "a b", "x.lock", "refs/heads/x", "0" * 40, "/x", "x/", "a@{b", "x:y"]
)
def test_a_branch_that_git_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(BadRequest):
        check_ref(name)


def test_names_that_differ_in_case_are_found() -> None:
    assert twins(["a", "README.md", "readme.md"]) == ("README.md", "readme.md")
    assert twins(["a", "b"]) is None
