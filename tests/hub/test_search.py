"""Searching a hub: words, filters and pages, on a real one and on those that speak otherwise."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hub_lab import Lab, client_of, stock
from stand_in_hub import send, send_json, stand_in

from hfbench.hub.refusals import NotAHub
from hfbench.hub.search import search

Hfbench = Callable[..., Any]

PEOPLE = """
from huggingface_hub import HfApi
api = HfApi()
for name, tag in (("llama-a", "x"), ("llama-b", "x"), ("qwen-a", "y")):
    api.create_repo(f"team/{name}", exist_ok=True)
    card = f"---\\ntags: [{tag}]\\npipeline_tag: text-generation\\n---\\n".encode()
    api.upload_file(repo_id=f"team/{name}", path_in_repo="README.md", path_or_fileobj=card)
"""


@pytest.fixture(scope="module")
def stocked(lab: Lab) -> Lab:
    """The hub with three more models."""
    stock(lab.url, lab.hub.writer, PEOPLE)
    return lab


def test_words_tags_and_authors_choose(stocked: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    client = stocked.client(monkeypatch, stocked.hub.writer)
    ids = lambda **asked: {each.id for each in search(client, **asked).models}  # noqa: E731
    assert ids() == {"team/llama-a", "team/llama-b", "team/qwen-a", "team/small"}
    assert ids(query="llama") == {"team/llama-a", "team/llama-b"}
    assert ids(filters=("y",)) == {"team/qwen-a"}
    assert ids(author="nobody") == set()


def test_what_is_private_is_found_by_its_people_alone(stocked: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "team/small" not in {each.id for each in search(stocked.client(monkeypatch, "")).models}


def test_pages_by_cursor_bring_each_model_once(stocked: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    client = stocked.client(monkeypatch, stocked.hub.writer)
    found, cursor, pages = [], "", 0
    while pages < 10:
        page = search(client, limit=1, sort="lastModified", cursor=cursor)
        found += [each.id for each in page.models]
        pages, cursor = pages + 1, page.cursor
        if not cursor:
            break
    assert len(found) == len(set(found)) == 4


def test_the_command_prints_a_row_a_model_and_how_to_go_on(stocked: Lab, lab_settings: Lab, hfbench: Hfbench) -> None:
    done = hfbench("hub", "search", "llama", "--endpoint", "lab", "--limit", "1", "--sort", "lastModified")
    assert "team/llama-b" in done.stdout
    assert "text-generation" in done.stdout
    cursor = done.stdout.strip().splitlines()[-1].removeprefix("more: --cursor ")
    told = json.loads(
        hfbench(
            "hub", "search", "llama", "--endpoint", "lab", "--sort", "lastModified", f"--cursor={cursor}", "--json"
        ).stdout
    )
    assert [each["reference"] for each in told["models"]] == ["lab:team/llama-a"]
    assert told["cursor"] == ""


def test_a_hub_that_refuses_expand_is_asked_without() -> None:
    def strict(at: BaseHTTPRequestHandler) -> None:
        known = "expand" not in parse_qs(urlsplit(at.path).query)
        send_json(at, [{"modelId": "org/a"}]) if known else send(at, 404, b"{}")

    with stand_in() as hub:
        hub.answers["/api/models"] = strict
        assert [each.id for each in search(client_of(hub)).models] == ["org/a"]


def test_a_hub_that_pages_in_another_way_is_followed_all_the_same() -> None:
    def skipping(at: BaseHTTPRequestHandler) -> None:
        skip = int(parse_qs(urlsplit(at.path).query).get("skip", ["0"])[0])
        more = {"Link": f'</api/models?limit=1&skip={skip + 1}>; rel="next"'} if skip < 2 else {}
        send_json(at, [{"id": f"org/m{skip}"}], more)

    with stand_in() as hub:
        hub.answers["/api/models"] = skipping
        first = search(client_of(hub), limit=1)
        second = search(client_of(hub), limit=1, cursor=first.cursor)
        third = search(client_of(hub), limit=1, cursor=second.cursor)
    assert [page.models[0].id for page in (first, second, third)] == ["org/m0", "org/m1", "org/m2"]
    assert third.cursor == ""


@pytest.mark.parametrize("data", [{"models": []}, ["text"], [{"id": "../../etc"}], [{"id": 7}], "x"])
def test_what_is_no_list_of_models_is_told(data: object) -> None:
    with stand_in() as hub:
        hub.answers["/api/models"] = lambda at: send_json(at, data)
        with pytest.raises(NotAHub):
            search(client_of(hub))


def test_facts_of_the_wrong_kind_are_left_out_and_nothing_breaks_a_terminal(hfbench: Hfbench) -> None:
    odd = {"id": "org/a", "downloads": "many", "likes": -1, "gated": 7, "tags": "x", "safetensors": []}
    odd |= {"lastModified": "\x1b[31m2026", "pipeline_tag": "\x1b]0;x\x07", "private": "yes"}
    with stand_in() as hub:
        hub.answers["/api/models"] = lambda at: send_json(at, [odd])
        done = hfbench("hub", "search", "--endpoint", hub.url)
    assert done.returncode == 0, done.stderr
    assert "org/a" in done.stdout
    assert "\x1b" not in done.stdout


def test_ctrl_c_ends_a_search_at_once(home: Path) -> None:
    def hang(at: BaseHTTPRequestHandler) -> None:
        time.sleep(20)

    with stand_in() as hub:
        hub.answers["/api/models"] = hang
        words = [sys.executable, "-m", "hfbench", "hub", "search", "--endpoint", hub.url]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        while not hub.asked:
            assert process.poll() is None
            time.sleep(0.02)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert time.monotonic() - began < 3
    assert "Traceback" not in said
