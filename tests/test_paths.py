"""Where things live, by the variables of the XDG specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfbench.paths import cache_root, config_root, jobs_root, leases_root

VARIABLES = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")


@pytest.fixture(autouse=True)
def without_a_home_of_hfbench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HFBENCH_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("value", [None, "", " ", "relative/folder"])
def test_a_variable_that_is_no_absolute_path_is_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    for name in VARIABLES if value is not None else ():
        monkeypatch.setenv(name, str(value))
    assert config_root() == tmp_path / ".config" / "hfbench"
    assert cache_root() == tmp_path / ".cache" / "hfbench"
    assert jobs_root() == tmp_path / ".local" / "share" / "hfbench" / "jobs"
    assert leases_root() == Path("/tmp/hfbench-leases")


def test_an_absolute_path_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, f"/data/{name}")
    assert config_root() == Path("/data/XDG_CONFIG_HOME/hfbench")
    assert cache_root() == Path("/data/XDG_CACHE_HOME/hfbench")
    assert jobs_root() == Path("/data/XDG_DATA_HOME/hfbench/jobs")


def test_a_home_of_hfbench_holds_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HFBENCH_HOME", "~/bench")
    assert [config_root(), cache_root(), jobs_root(), leases_root()] == [
        tmp_path / "bench" / name for name in ("config", "cache", "jobs", "leases")
    ]
