"""The Files tab: how files lie, hashes on demand with progress and a way to stop, and mismatches that stay."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from pages import brought_to_front, text

from hfbench.config import Config, ModelsConfig
from hfbench.models.inventory.inventory import take_inventory
from hfbench.models.reference import resolve
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.files import FilesTab, Hashed, Hashing, hash_and_post
from hfbench.screens.model_tabs.files_text import file_facts, layout_facts
from hfbench.widgets.notice import Notice
from hfbench.widgets.progress_line import ProgressLine
from hfbench.widgets.record_table import RecordTable

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 4976698672\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """A cache with org/tiny at main and an older revision that shares its configuration."""
    repository = tmp_path / "hub" / "models--org--tiny"
    (repository / "blobs").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("1" * 40)
    config = b'{"model_type": "llama"}'
    git = hashlib.sha1(b"blob %d\0" % len(config) + config).hexdigest()
    for commit, weights in (("1" * 40, b"w" * 3000), ("2" * 40, b"v" * 1000)):
        snapshot = repository / "snapshots" / commit
        snapshot.mkdir(parents=True)
        for name, digest, data in (("config.json", git, config), ("notes.txt", sha256(weights), weights)):
            (repository / "blobs" / digest).write_bytes(data)
            (snapshot / name).symlink_to(f"../../blobs/{digest}")
    return tmp_path / "hub"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_h_hashes_the_file_under_the_cursor(
    bench: Any, until: Any, picture: Any, make_model: Any, size: tuple[int, int]
) -> None:
    folder = make_model()
    digest = sha256((folder / "config.json").read_bytes())
    async with bench(str(folder)).run_test(size=size) as pilot:
        tab = await brought_to_front(pilot, until, FilesTab)
        await pilot.press("h")
        await until(pilot, lambda: tab.at_rest and digest[:12] in text(picture, pilot))
        row = next(line for line in picture(pilot) if "model.safetensors" in line)
        assert sha256((folder / "model.safetensors").read_bytes())[:12] not in row
        await pilot.press("enter")
        await until(pilot, lambda: digest in "".join(text(picture, pilot).split()))
        assert "nothing tells what the hash should be" in text(picture, pilot)


async def test_all_files_of_a_cache_are_hashed_and_found_right(
    bench: Any, until: Any, picture: Any, cached: Path
) -> None:
    config = Config(models=ModelsConfig(cache=str(cached)))
    async with bench("org/tiny", config=config).run_test(size=(120, 40)) as pilot:
        tab = await brought_to_front(pilot, until, FilesTab)
        assert "2 blobs" not in text(picture, pilot)
        assert "111111111111 this one, main" in text(picture, pilot)
        assert "222222222222 no ref" in text(picture, pilot)
        await pilot.press("H")
        await until(pilot, lambda: text(picture, pilot).count(" ok -> ") == 2)
        await pilot.press("enter")
        await until(pilot, lambda: "also used by 222222222222" in text(picture, pilot))
        assert "verdict ok as it should be" in text(picture, pilot)
        assert not tab.query_one(Notice).display


async def test_a_mismatch_is_an_error_that_stays_until_the_file_is_right(
    bench: Any, until: Any, picture: Any, cached: Path
) -> None:
    blob = cached / "models--org--tiny" / "blobs" / sha256(b"w" * 3000)
    blob.write_bytes(b"W" + b"w" * 2999)
    config = Config(models=ModelsConfig(cache=str(cached)))
    async with bench("org/tiny", config=config).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, FilesTab)
        await pilot.press("H")
        await until(pilot, lambda: "x notes.txt: its hash is not what it should be" in text(picture, pilot))
        assert "x differs" in text(picture, pilot)
        for key in ("down", "up", "slash", "n", "escape", "right_square_bracket", "left_square_bracket"):
            await pilot.press(key)
        await until(pilot, lambda: "x notes.txt: its hash is not what it should be" in text(picture, pilot))
        blob.write_bytes(b"w" * 3000)
        os.utime(blob, (1_600_000_000, 1_600_000_000))
        await pilot.press("H")
        await until(pilot, lambda: not tab.query_one(Notice).display)


async def test_a_long_hash_shows_progress_and_can_be_stopped(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    folder = make_model()
    with (folder / "huge.bin").open("wb") as file:
        file.truncate(2**40)
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, FilesTab)
        assert "stop hashing" not in text(picture, pilot)
        await pilot.press("H")
        await until(pilot, lambda: "sha256 of huge.bin" in text(picture, pilot))
        await until(pilot, lambda: "c stop hashing" in picture(pilot)[-1])
        await pilot.press("down", "up", "enter", "escape")
        await pilot.press("c")
        await until(pilot, lambda: tab.at_rest and not tab.query_one(ProgressLine).display)
        digest = sha256((folder / "config.json").read_bytes())[:12]
        await until(pilot, lambda: digest in text(picture, pilot))
        await until(pilot, lambda: "stop hashing" not in picture(pilot)[-1])


async def test_leaving_while_a_file_is_hashed_is_safe(bench: Any, until: Any, picture: Any, make_model: Any) -> None:
    folder = make_model()
    with (folder / "huge.bin").open("wb") as file:
        file.truncate(2**40)
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, FilesTab)
        await pilot.press("H")
        await until(pilot, lambda: "sha256 of huge.bin" in text(picture, pilot))
        hashing = tab._hashing
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ModelScreen))
        await until(pilot, lambda: not hashing.busy)


async def test_what_is_no_plain_file_is_told_and_not_opened(
    bench: Any, until: Any, picture: Any, toasts: Any, make_model: Any
) -> None:
    folder = make_model()
    os.mkfifo(folder / "a_pipe.bin")
    (folder / "b_gone.bin").symlink_to("nowhere\x1b[2J")
    (folder / "c_zero.bin").symlink_to("/dev/zero")
    (folder / "d_pointer.bin").write_text(POINTER)
    async with bench(str(folder)).run_test(size=(120, 40), notifications=True) as pilot:
        tab = await brought_to_front(pilot, until, FilesTab)
        shown = text(picture, pilot)
        for told in (
            "a FIFO, not a plain file",
            "where nothing is",
            "'/dev/zero'",
            "git-lfs pointer to",
        ):
            assert told in shown
        assert "x pointer" in shown
        await pilot.press("h")
        await until(pilot, lambda: "a_pipe.bin cannot be hashed: a FIFO" in " ".join(toasts(pilot).split()))
        await pilot.press("H")
        await until(pilot, lambda: tab.at_rest and "x unreadable" in text(picture, pilot))
        assert "x differs" in text(picture, pilot)
        assert all(line.isprintable() for line in picture(pilot))


async def test_a_folder_that_cannot_be_listed_leaves_the_tab_empty(bench: Any, until: Any, tmp_path: Path) -> None:
    async with bench(str(tmp_path / "gone")).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, FilesTab)
        for key in ("h", "H", "enter", "y", "c"):
            await pilot.press(key)
        assert tab.query_one(RecordTable).total == 0


def test_messages_come_at_a_pace_and_end_with_the_last_files(make_model: Any) -> None:
    folder = make_model()
    for number in range(300):
        (folder / f"{number}.txt").write_text(str(number))
    told: list[Any] = []
    inventory = take_inventory(resolve(str(folder)))
    hash_and_post(inventory.files, folder, lambda: False, told.append)
    files = [each for message in told if isinstance(message, Hashed) for each in message.files]
    assert len(files) == len(inventory.files)
    assert [isinstance(each, Hashed) and each.done for each in told][-1]
    assert sum(isinstance(each, Hashing) for each in told) < 100


def test_nothing_is_said_after_it_was_told_to_stop(make_model: Any) -> None:
    folder = make_model()
    told: list[Any] = []
    hash_and_post(take_inventory(resolve(str(folder))).files, folder, lambda: True, told.append)
    assert not told


def test_the_layout_names_some_revisions_and_counts_the_rest(cached: Path) -> None:
    repository = cached / "models--org--tiny"
    for digit in "3456":
        (repository / "snapshots" / (digit * 40)).mkdir()
    found = take_inventory(resolve("org/tiny", cache_dir=cached))
    values = [fact.value for fact in layout_facts(found, "|")]
    assert values[2].startswith("111111111111 this one, main | 2.95 KiB, 2.93 KiB its own")
    assert values[-1] == "and 3 more"


def test_the_details_tell_a_file_with_two_names(make_model: Any) -> None:
    folder = make_model()
    (folder / "twin.json").hardlink_to(folder / "config.json")
    found = next(each for each in take_inventory(resolve(str(folder))).files if each.name == "twin.json")
    assert "2 hard links to the same content" in [fact.value for fact in file_facts(found)]
