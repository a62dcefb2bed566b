"""What `hfbench runtimes` says to build an engine with can be typed as it stands."""

from __future__ import annotations

import shlex
from pathlib import Path

from small_model import make

from hfbench.actions.runtimes import Runtimes, launch_told, name_of
from hfbench.jobs.run import Run


def test_commands_of_builders_name_where_the_engine_goes(tmp_path: Path) -> None:
    rows = Runtimes(model=str(make(tmp_path / "sound"))).perform(Run()).rows
    told = {row.values["builder"]: shlex.split(launch_told(row)) for row in rows if row.action == "engine.build"}
    assert set(told) == {"aoti", "onnx", "trtllm"}
    for builder, words in told.items():
        assert words[words.index("--out") + 1] == f"engines/sound-{builder}"


def test_a_cached_model_is_named_by_its_repository() -> None:
    assert name_of("/hub/models--org--tiny-llama/snapshots/0123") == "tiny-llama"
    assert name_of("/hub/models--gpt2/snapshots/0123/") == "gpt2"
    assert name_of("./mine") == "mine"
