"""A real hub with a small model for all tests of a file, and the endpoints that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_lab import Lab, stock
from hub_process import make_hub
from small_hub_model import write_model


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One hub for all tests of a file."""
    folder = tmp_path_factory.mktemp("lab")
    model = write_model(folder / "model")
    hub = make_hub(folder)
    hub.start()
    try:
        code = f"""
from huggingface_hub import HfApi
api = HfApi()
api.create_repo("team/small", private=True)
print(api.upload_folder(repo_id="team/small", folder_path={str(model)!r}).oid)
"""
        commit = stock(hub.url, hub.writer, code).splitlines()[-1]
        yield Lab(hub, model, commit)
    finally:
        hub.stop()


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network, which other tests do without, for hubs of this machine; no proxy, no authority of the developer."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    certificates = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    for name in (
        "HF_ENDPOINT",
        "TRANSFORMERS_OFFLINE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        *certificates,
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def settings(home: Path) -> Callable[[str], None]:
    """Writes config.toml."""

    def write(text: str) -> None:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "config.toml").write_text(text)

    return write


@pytest.fixture
def lab_settings(lab: Lab, settings: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The endpoint `lab` in the configuration, with the writer's token in LAB_TOKEN."""
    settings(f'[endpoints.lab]\nurl = "{lab.url}"\ntoken_env = "LAB_TOKEN"\n')
    monkeypatch.setenv("LAB_TOKEN", lab.hub.writer)
    return lab
