"""An engine of this machine that is none, for the actions that only read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from engine_toys import manifest_of

from hfbench.engines.machine import read_machine
from hfbench.engines.manifest import Source, write_manifest


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A folder with the manifest of an engine of this machine's CPU. Its one file is no package."""
    folder = tmp_path / "engines" / "toy"
    folder.mkdir(parents=True)
    built = replace(read_machine(gpus=False).built_on(), torch="2.13.0", abi="cxx11")
    write_manifest(folder, manifest_of(folder, built_on=built, source=Source(given="x", folder=str(tmp_path))))
    return folder


@pytest.fixture
def torchlike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Python that seems to have torch 2.13.0, wherever the tests run."""
    folder = tmp_path / "site"
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "version.py").write_text("__version__ = '2.13.0'\ncuda: Optional[str] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
