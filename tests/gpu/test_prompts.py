"""Prompts: random ones that the seed alone decides, and given ones."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from hfbench.errors import HfbenchError, UsageError
from hfbench.gpu.prompts import LARGEST_FILE, random_prompts, read_prompt


def rows(seed: int = 0, batch: int = 3) -> list[list[int]]:
    return random_prompts(vocabulary=50, special={0, 1, 2}, length=40, batch=batch, seed=seed)


def test_the_seed_alone_decides_and_rows_differ() -> None:
    assert rows() == rows()
    assert rows(seed=1) != rows(seed=2)
    assert len({tuple(row) for row in rows()}) == 3
    assert rows(batch=1)[0] == rows()[0]


def test_special_tokens_are_never_drawn() -> None:
    drawn = {token for row in rows(batch=50) for token in row}
    assert drawn == set(range(3, 50))


def test_a_vocabulary_of_special_tokens_is_refused() -> None:
    with pytest.raises(HfbenchError, match="no ordinary one"):
        random_prompts(vocabulary=2, special={0, 1}, length=1, batch=1, seed=0)


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_bytes("Grüße\n".encode())
    assert read_prompt("", tmp_path / "p.txt") == "Grüße\n"
    assert read_prompt("text", None) == "text"
    assert read_prompt("", None) == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"ab\xff", "byte 2 is not UTF-8"), (b"", "the prompt file is empty"), (None, "cannot be read")],
)
def test_a_file_that_is_no_prompt_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "p.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        read_prompt("", file)
    assert caught.value.where == str(file)


def test_a_folder_and_two_prompts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_prompt("", tmp_path)
    with pytest.raises(UsageError, match="exclude each other"):
        read_prompt("text", tmp_path / "p.txt")


def test_a_huge_vocabulary_costs_nothing_and_ids_are_those_of_a_choice_among_all() -> None:
    [row] = random_prompts(vocabulary=10**12, special={0, 10**12, -1}, length=4, batch=1, seed=0)
    assert all(0 < token < 10**12 for token in row)
    source, ordinary = random.Random(7), [token for token in range(50) if token not in {0, 9, 10, 49}]
    drawn = random_prompts(vocabulary=50, special={49, 10, 9, 0}, length=200, batch=1, seed=7)
    assert drawn == [[source.choice(ordinary) for _ in range(200)]]


@pytest.mark.timeout(20)
def test_a_prompt_comes_from_a_plain_file_of_bounded_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for file in (tmp_path / "fifo", Path("/dev/zero"), Path("nul\0")):
        with pytest.raises(UsageError, match="cannot be read"):
            read_prompt("", file)
    with open(tmp_path / "big", "wb") as big:
        big.truncate(LARGEST_FILE + 1)
    with pytest.raises(UsageError, match="too long for a prompt"):
        read_prompt("", tmp_path / "big")
