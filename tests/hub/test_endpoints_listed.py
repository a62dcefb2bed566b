"""`hfbench hub endpoints`: what is configured, and whether it works."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hub_lab import Lab

Hfbench = Callable[..., Any]


def test_each_hub_is_told_with_the_place_of_its_token_and_never_the_token(lab_settings: Lab, hfbench: Hfbench) -> None:
    done = hfbench("hub", "endpoints")
    assert f"lab  {lab_settings.url}  token in the variable LAB_TOKEN" in done.stdout
    assert lab_settings.hub.writer not in done.stdout
    assert done.returncode == 0


def test_asked_a_hub_says_whose_token_it_is_and_a_dead_one_is_a_failure(
    lab: Lab, settings: Callable[[str], None], hfbench: Hfbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", lab.url)
    monkeypatch.setenv("HF_TOKEN", lab.hub.reader)
    settings(f'[endpoints.gone]\nurl = "http://127.0.0.1:9"\n[endpoints.open]\nurl = "{lab.url}/"\n')
    done = hfbench("hub", "endpoints", "--ask", "--json", env={"HTTPS_PROXY": "http://127.0.0.1:9"})
    told = {each["name"]: each for each in json.loads(done.stdout)["endpoints"]}
    assert (told["env"]["account"], told["env"]["default"]) == ("reader", True)
    assert told["open"]["account"] == "nobody"
    assert "Connection refused" in told["gone"]["problem"]
    assert done.returncode == 1
