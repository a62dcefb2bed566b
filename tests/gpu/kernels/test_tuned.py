"""The file of tuned configurations: nothing in it is lost, the best is the quickest, programs can read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.errors import HfbenchError, UsageError
from hfbench.gpu.kernels.tune import _readable
from hfbench.gpu.kernels.tuned import (
    Choice,
    DamagedTable,
    Key,
    RowVerdict,
    TunedRow,
    best,
    bucket_of,
    load_tuned,
    save,
    set_aside,
    source_hash,
)

KEY = Key(kernel="softmax", source="3f9a", triton="3.9.0", capability="9.0", dtype="bf16", bucket="C=8192,R=4096")
ZERO = Path("/dev/zero")
SAVE_FIVE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_tuned import KEY, row
from hfbench.gpu.kernels.tuned import save
for number in range(5):
    save(Path(sys.argv[2]), KEY, [row(f"{sys.argv[3]}-{number}", 1.0)])
"""


def row(label: str, seconds: float | None, verdict: RowVerdict = "ok") -> TunedRow:
    choice = Choice(label=label, constants={"BLOCK": 8192, "KIND": "fp32"}, num_warps=8, num_stages=3)
    return TunedRow(choice=choice, shape={"R": 4096, "C": 8192}, bench="cuda", verdict=verdict, seconds=seconds)


def test_the_quickest_that_works_is_best(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tuned.json"
    assert load_tuned(path) == {}
    save(path, KEY, [row("a", 3.0), row("b", None, "crash"), row("c", 2.0), row("d", None, "pruned")])
    save(path, KEY, [row("a", 1.0)])
    table = load_tuned(path)
    found = best(table, KEY)
    assert found
    assert found == best(table, str(KEY))
    assert found.label == "a"
    assert found.meta == {"BLOCK": 8192, "KIND": "fp32", "num_warps": 8, "num_stages": 3}
    assert [each.choice.label for each in table[str(KEY)].rows] == ["a", "c", "b", "d"]


def test_what_never_worked_is_never_best(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    save(path, KEY, [row("a", None, "failed"), row("b", None, "timeout")])
    assert best(load_tuned(path), KEY) is None


@pytest.mark.parametrize("field", ["kernel", "source", "triton", "capability", "dtype", "bucket"])
def test_every_part_of_the_key_counts(field: str, tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    save(path, KEY, [row("a", 1.0)])
    other = Key(**{**vars(KEY), field: "other"})
    assert best(load_tuned(path), other) is None
    save(path, other, [row("b", 1.0)])
    found = best(load_tuned(path), KEY)
    assert found
    assert found.label == "a"


def test_a_program_reads_it_with_nothing_but_json(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    save(path, KEY, [row("a", 1.0)])
    told = json.loads(path.read_text())
    assert told["entries"]["softmax|3f9a|3.9.0|9.0|bf16|C=8192,R=4096"]["best"] == {
        "label": "a",
        "constants": {"BLOCK": 8192, "KIND": "fp32"},
        "num_warps": 8,
        "num_stages": 3,
        "options": {},
    }


def test_processes_that_save_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    words = [sys.executable, "-c", SAVE_FIVE, str(Path(__file__).parent), str(path)]
    writers = [subprocess.Popen([*words, name], stderr=subprocess.PIPE) for name in "abcd"]
    for writer in writers:
        _, said = writer.communicate(timeout=120)
        assert writer.returncode == 0, said
    assert {each.choice.label for each in load_tuned(path)[str(KEY)].rows} == {
        f"{n}-{i}" for n in "abcd" for i in range(5)
    }
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".json"] == ["tuned.json"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "it is no JSON"),
        (b'{"schema": 1, "entries": {', "it is no JSON"),
        (b"[" * 100_000, "it is no JSON"),
        (b"\xff\xfe", "it is no text"),
        (b"[]", "it has no entries"),
        (b'{"schema": 1, "entries": []}', "it has no entries"),
        (b'{"schema": 2, "entries": {}}', "its schema is 2, 1 is known here"),
        (b'{"schema": 1, "entries": {"x": {"rows": 3}}}', "Entry: 'key' is missing"),
        (b'{"schema": 1, "entries": {"x": 3}}', "Entry: an object was expected"),
    ],
)
def test_a_damaged_file_is_one_sentence_and_is_not_lost(text: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    path.write_bytes(text)
    for attempt in (lambda: load_tuned(path), lambda: save(path, KEY, [row("a", 1.0)])):
        with pytest.raises(DamagedTable) as caught:
            attempt()
        assert f"{path}: is no file of tuned configurations: {why}" in str(caught.value)
        assert path.read_bytes() == text
    (tmp_path / "tuned.json.damaged-1").write_text("an older one")
    assert set_aside(path).read_bytes() == text
    assert (tmp_path / "tuned.json.damaged-1").read_text() == "an older one"
    assert not path.exists()


def test_what_is_no_plain_file_is_refused_and_stays_where_it_is(tmp_path: Path) -> None:
    """A folder was once renamed, a pipe waited for, and a device read until memory ran out."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path, why in ((tmp_path / "folder", "folder"), (tmp_path / "pipe", "not a plain file"), (ZERO, "not a plain")):
        with pytest.raises(UsageError, match=f"{path}: is .*{why}"):
            load_tuned(path)
        with pytest.raises(UsageError):
            list(_readable(path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "pipe"]


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ('{"model_type": "llama", "architectures": []}', False),
        ('{"entries": {}}', False),
        ("import torch", False),
        ("{", False),
        ("", True),  # as mktemp makes it
        ('{\n "schema": 1,\n "entries": {\n  "x"', True),
        ('{"schema": 2, "entries": {}}', True),
    ],
)
def test_only_a_file_of_ours_is_put_aside(text: str, ours: bool, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    if ours:
        assert "a new file begun" in next(_readable(path))
        return
    with pytest.raises(UsageError, match=r"config\.json: is no file of tuned configurations: .*Name another file"):
        list(_readable(path))
    assert [each.name for each in tmp_path.iterdir()] == ["config.json"]
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HfbenchError, match=r"tuned\.json: cannot be written: .*name another"):
        save(tmp_path / "file" / "tuned.json", KEY, [row("a", 1.0)])


def test_buckets_are_powers_of_two() -> None:
    assert bucket_of({"R": 4096, "C": 5000}) == bucket_of({"C": 8192, "R": 2049}) == "C=8192,R=4096"
    assert bucket_of({"R": 0, "C": 1}) == "C=1,R=0"


@given(st.integers(1, 2**40))
def test_a_bucket_holds_its_size_and_no_more_than_twice_that(size: int) -> None:
    top = int(bucket_of({"N": size}).removeprefix("N="))
    assert size <= top < 2 * size
    assert bucket_of({"N": top}) == f"N={top}"


def test_the_hash_is_of_the_file_and_its_neighbours_wherever_they_lie() -> None:
    assert source_hash("a", {}) == "a"
    moved = source_hash("a", {"/x/h.py": "1", "/x/i.py": "2"})
    assert moved == source_hash("a", {"/y/i.py": "2", "/y/h.py": "1"})
    assert (
        len({moved, source_hash("a", {"/x/h.py": "1", "/x/i.py": "3"}), source_hash("b", {"/x/h.py": "1"}), "a"}) == 4
    )
