"""A running hub with a model on it, clients of hubs, and stock clients in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hub_process import HubProcess
from stand_in_hub import StandIn

from hfbench.hub.client import HubClient
from hfbench.hub.endpoints import Endpoint, TokenSource


@dataclass
class Lab:
    """A running hub with the private `team/small`; `clients` are made for a person of it, or for nobody."""

    hub: HubProcess
    model: Path
    commit: str

    @property
    def url(self) -> str:
        return self.hub.url

    def client(self, monkeypatch: pytest.MonkeyPatch, token: str) -> HubClient:
        monkeypatch.setenv("LAB_TOKEN", token)
        return HubClient(Endpoint("lab", self.url, TokenSource("env", "LAB_TOKEN")))


def stock(url: str, token: str, code: str) -> str:
    """What a stock client prints: huggingface_hub in a process of its own, with nothing but the two variables."""
    env = {**os.environ, "HF_ENDPOINT": url, "HF_TOKEN": token, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    env.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def client_of(hub: StandIn, token: str = "") -> HubClient:
    """A client of a stand-in; the token is in a variable that the caller set."""
    return HubClient(Endpoint("lab", hub.url, TokenSource("env", token) if token else TokenSource()))
