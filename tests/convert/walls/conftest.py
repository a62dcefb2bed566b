"""Tiny models made once, and one process that runs models for all tests of a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_models import Tiny, make_tiny

from hfbench.convert.walls.asking import Judging
from hfbench.jobs.run import Run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """The folder of a tiny model by its name, made when it is first asked for."""
    pytest.importorskip("transformers")
    pytest.importorskip("torch").set_num_threads(1)
    top, made = tmp_path_factory.mktemp("tiny"), {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = make_tiny(name, top / name)
        return made[name]

    return folder


@pytest.fixture(scope="session")
def judging() -> Iterator[Judging]:
    """The process with torch and transformers, asked by many tests."""
    with pytest.MonkeyPatch.context() as patch, Judging(Run()) as found:
        patch.setenv("OMP_NUM_THREADS", "1")  # threads that wait for tiny matrices only burn time
        yield found
