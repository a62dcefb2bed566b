"""What the Convert screen reads of jobs: walls as they are told of one by one, and ends without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_folders import NOW, make_job

from hfbench.jobs.events import Log, Progress, Running, Started
from hfbench.jobs.snapshot import read_job
from hfbench.jobs.state import State
from hfbench.screens.convert_asks import SourceFound, doing_of, find_source, walls_logged
from hfbench.widgets.wall_lines import WallTold


def test_walls_are_known_as_soon_as_a_line_tells_of_them() -> None:
    lines = [
        "loaded",
        "weights: proven: 54 tensors, bit by bit",
        "forward: perhaps: x",
        "task: could not: no: tokenizer",
    ]
    assert walls_logged(lines) == {
        "weights": WallTold(verdict="proven", words="54 tensors, bit by bit"),
        "task": WallTold(verdict="could not", words="no: tokenizer"),
    }


def test_a_proof_whose_worker_is_gone_says_so_and_keeps_what_it_told(tmp_path: Path) -> None:
    params = {"model": "/m", "converted": "/out", "walls": ["weights", "forward"]}
    events = [
        Started(at=NOW - 20, pid=1, ticks=1, host="lab-3"),
        Running(at=NOW - 19),
        Log(at=NOW - 10, text="weights: proven: 54 tensors"),
        Progress(at=NOW - 9, phase="forward reference", done=1, total=2),
    ]
    doing = doing_of(read_job(make_job(tmp_path, "eeee01", "verify", params, events)))
    assert doing.state is State.DIED
    assert doing.about == ("/m", "/out")
    assert "left no word" in str(doing.error)
    assert doing.walls["weights"].verdict == "proven"


@pytest.mark.parametrize("named", ["made", "made/release", "made/hf"])
def test_a_checkpoint_is_known_by_its_folder_its_iteration_and_what_it_carries(tmp_path: Path, named: str) -> None:
    (tmp_path / "made" / "release" / "mp_rank_00").mkdir(parents=True)
    (tmp_path / "made" / "release" / "mp_rank_00" / "model_optim_rng.pt").write_bytes(b"")
    (tmp_path / "made" / "latest_checkpointed_iteration.txt").write_text("release")
    (tmp_path / "made" / "hf").mkdir()
    (tmp_path / "made" / "hf" / "config.json").write_text("{}")
    found: list[object] = []
    find_source(str(tmp_path / named), "", lambda: False, found.append)
    [message] = found
    assert isinstance(message, SourceFound)
    assert message.source.megatron
    assert (message.source.name, message.source.place) == ("made", tmp_path)


def test_a_folder_with_weights_is_a_model_also_beside_ranks_of_megatron(tmp_path: Path) -> None:
    (tmp_path / "mirror" / "mp_rank_00").mkdir(parents=True)
    (tmp_path / "mirror" / "mp_rank_00" / "model_optim_rng.pt").write_bytes(b"")
    (tmp_path / "mirror" / "model.safetensors").write_bytes(b"")
    found: list[object] = []
    find_source(str(tmp_path / "mirror"), "", lambda: False, found.append)
    [message] = found
    assert isinstance(message, SourceFound)
    assert not message.source.megatron
