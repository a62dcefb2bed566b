"""A hub in a process of its own, with three people, on SQLite or on a PostgreSQL that is started for it."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2

from hfbench.registry.administration import add_user, create_token, grant_role
from hfbench.registry.founding import found
from hfbench.registry.settings import Settings

PATIENCE = 60.0


@dataclass
class HubProcess:
    """A hub that can be stopped, killed and started again; `stranger` has no role in `team`, the others have theirs."""

    settings: Settings
    admin: str
    writer: str
    reader: str
    stranger: str
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.settings.base_url

    def start(self, address: str = "", verify: ssl.SSLContext | bool = True) -> None:
        words = ["--folder", self.settings.folder, "--port", str(self.settings.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hfbench", "registry", "serve", *words],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if httpx2.get(f"{address or self.url}/health", verify=verify).status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, how)
            self.process.wait(PATIENCE)
            self.process = None

    def client(self, token: str = "") -> httpx2.Client:
        """Plain HTTP, as one of the people or as nobody."""
        return httpx2.Client(
            base_url=self.url, headers={"authorization": f"Bearer {token}"} if token else {}, timeout=30
        )


def make_hub(folder: Path, database: str = "", **more: object) -> HubProcess:
    """A hub with its people, not yet started."""
    settings = Settings(folder=str(folder / "hub"), port=free_port(), database=database).changed(**more)
    admin = found(settings, "boss")
    tokens = {}
    for name, role in (("writer", "write"), ("reader", "read"), ("stranger", "")):
        add_user(settings, name)
        if role:
            grant_role(settings, name, "team", role)
        tokens[name] = create_token(settings, name, name="test")
    return HubProcess(settings, admin, **tokens, log=folder / "hub.log")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
