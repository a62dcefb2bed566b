"""Crews whose processes are forked from one that has imported what they need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from preloaded import Parents

from hfbench.gpu.kernels import processes


@pytest.fixture(scope="session")
def parents() -> Iterator[Parents]:
    """Processes that have imported torch and Triton, started when a crew needs one."""
    made = Parents()
    yield made
    made.close()


@pytest.fixture(scope="module")
def forked_crews(parents: Parents) -> Iterator[None]:
    """Processes of crews are forked; that they are started well is seen where this is not asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "subprocess", parents)
        yield
