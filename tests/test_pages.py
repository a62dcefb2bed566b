"""The documentation that comes with hfbench: read by a command, linked from errors, built without a network."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hfbench.commands.docs import packaged_docs, page_names
from hfbench.engines.manifest import read_manifest
from hfbench.errors import HfbenchError, error_from_parts
from hfbench.pages import ROOMS

ROOT = Path(__file__).parents[1]
FETCHED = re.compile(r"""<(?:script|img|iframe|link\b(?![^>]*rel="canonical"))[^>]*(?:src|href)="https?://""")


def hfbench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hfbench", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("room", "page"), ROOMS.items())
def test_each_room_exists_and_so_does_its_page(room: str, page: str) -> None:
    assert importlib.util.find_spec(f"hfbench.{room}") is not None
    assert page in page_names(packaged_docs())


def test_an_error_names_the_page_of_the_room_that_raised_it_also_across_processes(tmp_path: Path) -> None:
    with pytest.raises(HfbenchError) as caught:
        read_manifest(tmp_path)
    assert caught.value.page == "engines"
    assert error_from_parts(json.loads(json.dumps(caught.value.parts()))).page == "engines"


def test_an_error_of_no_room_names_none() -> None:
    error = HfbenchError("something is wrong")
    assert error.page == ""
    assert "page" not in error.parts()


def test_a_page_is_found_by_its_last_name_where_no_other_has_that() -> None:
    assert hfbench("docs", "read", "HB142").stdout == hfbench("docs", "read", "checks/HB142").stdout != ""
    assert hfbench("docs", "read", "nightly").stdout.startswith("# ")
    assert hfbench("docs", "read", "HB9999").returncode == 2


def test_a_person_at_a_terminal_is_told_the_page_and_a_pipe_is_not() -> None:
    words = [sys.executable, "-m", "hfbench", "hub", "search", "x", "--endpoint", "nosuch"]
    ours, theirs = pty.openpty()
    subprocess.run(words, stderr=theirs, stdout=subprocess.DEVNULL, check=False)
    told = os.read(ours, 4096).decode()
    os.close(theirs)
    os.close(ours)
    assert "more about this: hfbench docs read hub" in " ".join(told.split())
    piped = subprocess.run(words, capture_output=True, text=True, check=False)
    assert piped.stderr.startswith("hfbench: ")
    assert "more about this" not in piped.stderr


def test_pages_are_listed_and_read() -> None:
    listed = hfbench("docs", "list").stdout.splitlines()
    assert ["recipes/nightly", "A nightly regression test in CI"] in [re.split("  +", line) for line in listed]
    assert sum(line.startswith("checks/HB") for line in listed) == 1
    assert hfbench("docs", "read", "recipes/nightly").stdout.startswith("# A nightly regression test")
    missing = hfbench("docs", "read", "enginse")
    assert missing.returncode == 2
    assert "Did you mean 'engines'" in missing.stderr


def test_the_site_builds_with_every_link_sound_and_asks_no_network(tmp_path: Path) -> None:
    pytest.importorskip("material")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 150
    assert [page.name for page in pages if FETCHED.search(page.read_text())] == []


def test_each_recipe_names_a_script_that_is_there() -> None:
    recipes = [path for path in (packaged_docs() / "recipes").glob("*.md") if path.stem != "index"]
    assert len(recipes) >= 6
    for recipe in recipes:
        named = re.findall(r"examples/[\w-]+\.hfb\.yaml", recipe.read_text())
        assert named, recipe.name
        assert [name for name in named if not (ROOT / name).is_file()] == []
