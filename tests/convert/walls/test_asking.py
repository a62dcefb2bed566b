"""The process that runs models: its errors come through as sentences, and its death too."""

from __future__ import annotations

import pytest

from hfbench.convert.walls.asking import Judging
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run


def test_process_that_ends_is_told_with_its_last_words() -> None:
    with Judging(Run(), module="hfbench.no_such_module") as judging:
        with pytest.raises(HfbenchError, match=r"ended with status 1: .*No module named hfbench.no_such_module"):
            judging.ask("open")
        with pytest.raises(HfbenchError, match="ended with status 1"):  # it is started anew
            judging.ask("open")
