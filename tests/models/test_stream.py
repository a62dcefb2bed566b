"""Reading in a child process: the same rows, in slices, and no child outlives its reader."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.models.checkpoint import open_checkpoint, read_shards
from hfbench.models.columns import TensorColumns
from hfbench.models.stream import SLICE_CHARACTERS, SLICE_ROWS, Begun, Done, Failed, Rows, Trouble, follow, slices
from hfbench.models.summary import summarise


def test_the_rows_and_the_summary_are_those_of_reading_here(sharded: Path) -> None:
    columns = TensorColumns()
    frames = list(follow(sharded))
    assert frames[0] == Begun("safetensors-sharded", 2)
    for frame in frames[1:-1]:
        assert isinstance(frame, Rows)
        frame.add_to(columns)
    assert list(columns) == list(open_checkpoint(sharded).columns)
    assert isinstance(frames[-1], Done)
    assert frames[-1].summary() == summarise(sharded)


def test_a_broken_shard_comes_as_trouble_among_the_rows(sharded: Path) -> None:
    (sharded / "model-00001-of-00002.safetensors").unlink()
    kinds = [type(frame) for frame in follow(sharded)]
    assert kinds == [Begun, Trouble, Rows, Done]


def test_what_cannot_be_read_at_all_comes_as_a_frame(tmp_path: Path) -> None:
    [frame] = follow(tmp_path / "nowhere")
    assert isinstance(frame, Failed)
    assert "cannot be read" in str(frame.error)


def test_a_file_with_many_tensors_comes_in_slices(tmp_path: Path, file_of: Callable[..., bytes]) -> None:
    many = {f"l.{n}": ("U8", (1,), 1) for n in range(2 * SLICE_ROWS + 5)}
    (tmp_path / "model.safetensors").write_bytes(file_of(many))
    [read] = read_shards(tmp_path)
    parts = list(slices(read))
    assert [len(part.names) for part in parts] == [SLICE_ROWS, SLICE_ROWS, 5]
    columns = TensorColumns()
    for part in parts:
        part.add_to(columns)
    assert list(columns) == list(open_checkpoint(tmp_path).columns)


def test_long_names_make_small_slices(tmp_path: Path, file_of: Callable[..., bytes]) -> None:
    many = {f"{n}" + "x" * 5000: ("U8", (1,), 1) for n in range(300)}
    (tmp_path / "model.safetensors").write_bytes(file_of(many))
    [read] = read_shards(tmp_path)
    assert all(sum(map(len, part.names)) <= SLICE_CHARACTERS for part in slices(read))


def test_names_with_odd_characters_survive_the_pipe(tmp_path: Path, file_of: Callable[..., bytes]) -> None:
    (tmp_path / "model.safetensors").write_bytes(file_of({"a\n\0\U0001f600\x1b": ("U8", (1,), 1), "": ("U8", (0,), 0)}))
    [rows] = [frame for frame in follow(tmp_path) if isinstance(frame, Rows)]
    assert rows.names == ["a\n\0\U0001f600\x1b", ""]


def test_a_module_in_the_current_folder_is_never_run(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (single / "json.py").write_text("open('run', 'w').close()")
    monkeypatch.chdir(single)
    assert isinstance(list(follow(single))[-1], Done)
    assert not (single / "run").exists()


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_closing_the_iterator_ends_the_child(sharded: Path) -> None:
    before = children_of(os.getpid())
    frames = follow(sharded)
    next(frames)
    frames.close()
    assert children_of(os.getpid()) == before


def test_the_child_ends_when_its_reader_is_killed(sharded: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hfbench.models import stream\n"
        f"child = stream._start(stream.Location('', Path({str(sharded)!r}), 'local'))\n"
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    reader = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert reader.stdout
    child = Path(f"/proc/{int(reader.stdout.readline())}")
    reader.kill()
    reader.communicate()
    for _ in range(200):
        if not child.exists():
            return
        time.sleep(0.05)
    pytest.fail("the child still runs 10 s after its reader was killed")
