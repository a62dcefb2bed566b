"""A hub's page and models in words: what is asked for, what is not known, and lines that fit."""

from __future__ import annotations

import pytest

from hfbench.errors import HfbenchError
from hfbench.hub.found import FoundModel
from hfbench.widgets.cells import spans_width
from hfbench.widgets.glyphs import ASCII, UNICODE
from hfbench.widgets.hub_rows import MOST, HubPage, access_of, found_lines, found_record, status_line

PAGE = HubPage(endpoint="lab", url="http://lab:8080")
MODEL = FoundModel(
    id="org/" + "long-name-" * 9,
    reference="lab:org/x",
    gated="auto",
    private=True,
    downloads=1234,
    likes=1,
    parameters=8_030_000_000,
    modified="2026-05-02T10:00:00.000Z",
    task="text-generation",
    tags=("gguf", "長い" * 60),
)


def test_words_are_taken_apart_into_names_and_an_author() -> None:
    page = HubPage(endpoint="lab", url="", words=" small author:team  llama ", tags=("gguf",), sort="likes", cursor="c")
    asked = {"endpoint": "lab", "query": "small llama", "author": "team", "filter": ["gguf"], "sort": "likes"}
    assert page.values() == {**asked, "cursor": "c"}
    assert PAGE.values() == {"endpoint": "lab"}


def test_what_a_hub_does_not_tell_is_left_blank() -> None:
    cells = found_record(FoundModel(id="a/b", reference="lab:a/b")).cells
    assert cells == {"name": "a/b", "task": "", "params": "", "downloads": "", "updated": "", "access": "public"}
    assert found_record(MODEL).cells["params"] == "8.03B"
    assert access_of(MODEL) == "private, gated"


@pytest.mark.parametrize("width", [20, 78, 118])
@pytest.mark.parametrize("glyphs", [ASCII, UNICODE], ids=["ascii", "unicode"])
def test_no_line_is_wider_than_there_is_room(width: int, glyphs: object) -> None:
    told = found_lines(MODEL, PAGE, width, glyphs)  # type: ignore[arg-type]
    assert len(told) == 4
    assert all(spans_width(line) <= width for line in told)


def test_the_status_says_what_is_true_and_what_to_press() -> None:
    def said(**told: object) -> str:
        return status_line(HubPage(**{"endpoint": "lab", "url": "http://lab", **told}), ASCII)  # type: ignore[arg-type]

    assert said() == "http://lab: enter lists models, s searches"
    assert said(asked=True, asking=True) == "asking lab (http://lab) ... esc stops"
    assert said(asked=True, stopped=True) == "stopped; u asks again"
    assert said(asked=True, error=HfbenchError("gone")) == "http://lab"
    one = (FoundModel(id="a/b", reference="lab:a/b"),)
    assert said(asked=True, models=one, sort="likes") == "1 model | most likes first"
    assert said(asked=True, models=one, tags=("x",), cursor="c") == "1 model, and more | in the hub's order | tags x"
    assert said(asked=True, models=one * MOST, cursor="c").endswith("narrow the search to see others")


def test_a_number_is_shown_beside_a_source_once_it_is_known() -> None:
    one = (FoundModel(id="a/b", reference="lab:a/b"),)
    assert PAGE.count == ""
    assert HubPage(endpoint="lab", url="", asked=True).count == "0"
    assert HubPage(endpoint="lab", url="", asked=True, error=HfbenchError("gone")).count == ""
    assert HubPage(endpoint="lab", url="", asked=True, models=one, cursor="c").count == "1+"
