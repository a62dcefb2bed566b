"""The Cache screen: a real cache as it is found, freed and verified by real jobs, and what is said of each part."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW, make_job
from pages import read
from textual.widgets import Label

from hfbench.jobs.events import Finished, Running, Started
from hfbench.jobs.history import History
from hfbench.paths import jobs_root
from hfbench.screens.attached import stops_of
from hfbench.screens.cache import CacheScreen, CacheTable
from hfbench.screens.cache_jobs import verified_by
from hfbench.screens.cache_page import CacheRepoScreen, RevisionTable
from hfbench.screens.confirm import Confirm
from hfbench.screens.kept import Left, Stop
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.palette import Palette

OLD, NEW = "a" * 40, "b" * 40
LONG_AGO = time.time() - 90 * 86400
NOBODY = 2**22 - 1
"""A process id that is taken by nobody in a container of ours."""


class HandMade:
    """A cache written by hand, as stock clients lay it out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, repo: str, commit: str, files: dict[str, bytes], ref: str = "", *, kind: str = "models") -> Path:
        """One revision; its snapshot."""
        top = self.folder / f"{kind}--{repo.replace('/', '--')}"
        for name, content in files.items():
            blob, link = top / "blobs" / hashlib.sha256(content).hexdigest(), top / "snapshots" / commit / name
            for each in (blob, link):
                each.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(content)
            os.utime(blob, (LONG_AGO, LONG_AGO))
            link.symlink_to(os.path.relpath(blob, link.parent))
        if ref:
            (top / "refs").mkdir(exist_ok=True)
            (top / "refs" / ref).write_text(commit)
        return top / "snapshots" / commit


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HandMade:
    """Two revisions that share a file, a dataset, a broken link, an orphan and a stale lock."""
    made = HandMade(tmp_path / "hub")
    monkeypatch.setenv("HF_HUB_CACHE", str(made.folder))
    shared = b"shared" * 20_000
    made.add("org/m", OLD, {"shared.bin": shared, "w.bin": b"first" * 5_000})
    made.add("org/m", NEW, {"shared.bin": shared, "w.bin": b"second" * 5_000}, ref="main")
    made.add("org/table", NEW, {"rows.csv": b"1,2\n" * 900}, ref="main", kind="datasets")
    broken = made.add("org/torn", NEW, {"config.json": b"{}", "gone.bin": b"gone"}, ref="main")
    (broken / "gone.bin").resolve().unlink()
    orphan = made.folder / "models--org--m" / "blobs" / "0123abcd"
    orphan.write_bytes(b"o" * 50_000)
    os.utime(orphan, (LONG_AGO, LONG_AGO))
    lock = made.folder / ".locks" / "models--org--m" / "dead.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(f"{NOBODY}\n{socket.gethostname()}\n")
    return made


def text(picture: Any, pilot: Any) -> str:
    return " ".join("\n".join(picture(pilot)).split())


async def opened(pilot: Any, until: Any) -> CacheTable:
    """The list, read."""
    await pilot.press("7")
    await until(pilot, lambda: isinstance(pilot.app.screen, CacheScreen) and pilot.app.screen.listed)
    table: CacheTable = pilot.app.screen.query_one(CacheTable)
    return table


def states(table: Any) -> dict[str, str]:
    return {table.rows[n].cells["repo"]: table.rows[n].cells["state"] for n in range(table.shown)}


async def test_every_part_of_the_cache_has_a_state_and_what_to_do(
    bench: Any, until: Any, picture: Any, cache: HandMade
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        table = await opened(pilot, until)
        assert states(table) == {
            "org/m": "! orphans 48.8 KiB",
            "org/table": "ok",
            "org/torn": "! 1 broken link",
            "models--org--m/dead.lock": "! stale lock",
        }
        shown = text(picture, pilot)
        assert "3 repositories" in shown
        assert "48.8 KiB of orphans · 1 stale lock" in shown
        assert " free" in shown
        assert all(key in shown for key in ("enter open", "d free", "O orphans", "v verify", "p pull", "q quit"))
        assert "1 blob that no revision names" in shown
        await pilot.press("down", "down")
        assert "1 link leads nowhere: gone.bin do p pulls it again" in text(picture, pilot)
        await pilot.press("down")
        assert "O removes it: it would keep others waiting for ever" in text(picture, pilot)
        await pilot.press("slash", *"table", "enter")
        assert list(states(table)) == ["org/table"]
        await pilot.press("escape", "home", "p")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.state.values["model"] == "org/m"


async def test_the_page_of_a_repository_lists_revisions_leftovers_and_files(
    bench: Any, until: Any, picture: Any, cache: HandMade
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await opened(pilot, until)
        await pilot.press("enter")
        page: Any = pilot.app.screen
        assert isinstance(page, CacheRepoScreen)
        table = page.query_one(RevisionTable)
        await until(pilot, lambda: table.total == 3)
        assert {table.rows[n].cells["revision"] for n in range(3)} == {NEW[:12], OLD[:12], "none"}
        assert table.move_to(NEW)
        await until(pilot, lambda: any(path.endswith(NEW) for path in page._files))
        shown = text(picture, pilot)
        assert "29.3 KiB of them its own: d frees these" in shown
        assert "shared.bin 117 KiB" in shown
        await pilot.press("end")
        assert "that no revision names do O frees all orphans of the cache" in text(picture, pilot)


async def test_d_says_what_it_frees_and_frees_it_in_a_job_only_when_told_to(
    bench: Any, until: Any, picture: Any, toasts: Any, cache: HandMade
) -> None:
    snapshots = cache.folder / "models--org--m" / "snapshots"
    async with bench(watch=True).run_test(size=(80, 24), notifications=True) as pilot:
        await opened(pilot, until)
        await pilot.press("enter")
        page: Any = pilot.app.screen
        await until(pilot, lambda: page.is_mounted and page.query_one(RevisionTable).move_to(OLD))
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm) and pilot.app.screen.query(Label))
        assert "free 24.4 KiB: revision aaaaaaaaaaaa, blob? y yes" in text(picture, pilot)
        await pilot.press("n")
        assert (snapshots / OLD).exists()
        assert History(jobs_root()).rows() == []
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        table = page.query_one(RevisionTable)
        await until(pilot, lambda: table.total == 2)
        assert not (snapshots / OLD).exists()
        assert (snapshots / NEW / "shared.bin").read_bytes().startswith(b"shared")
        await until(pilot, lambda: "24.4 KiB freed" in toasts(pilot))
        await pilot.press("O")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y", "escape")
        top = pilot.app.screen
        await until(pilot, lambda: isinstance(top, CacheScreen) and states(top.query_one(CacheTable))["org/m"] == "ok")
        assert not (snapshots.parent / "blobs" / "0123abcd").exists()


async def test_a_dataset_is_not_freed_by_the_name_it_shares_with_a_model(
    bench: Any, until: Any, toasts: Any, cache: HandMade
) -> None:
    cache.add("org/m", NEW, {"rows.csv": b"1,2\n" * 90_000}, ref="main", kind="datasets")
    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        table = await opened(pilot, until)
        assert table.move_to(str(cache.folder / "datasets--org--m"))
        await pilot.press("d")
        await until(pilot, lambda: "which would be freed in its place" in toasts(pilot), 10)
        assert not isinstance(pilot.app.screen, Confirm)


async def test_a_blob_that_is_not_what_its_name_says_is_told_once_a_job_hashed_it(
    bench: Any, until: Any, picture: Any, cache: HandMade
) -> None:
    blob = (cache.folder / "models--org--torn" / "snapshots" / NEW / "config.json").resolve()
    blob.write_bytes(b"[]")
    os.utime(blob, (LONG_AGO, LONG_AGO))
    async with bench(watch=True).run_test(size=(120, 40)) as pilot:
        table = await opened(pilot, until)
        await pilot.press("v")
        await until(pilot, lambda: any(row.state.over for row in pilot.app.machine.known_jobs))
        await pilot.press("escape")
        await until(pilot, lambda: states(table)["org/torn"].startswith("x damaged"))
        assert table.move_to(str(cache.folder / "models--org--torn"))
        await pilot.pause()
        shown = text(picture, pilot)
        assert "ago, 1 blob damaged" in shown
        assert "its hash is" in shown
        assert "free the revision with d, and pull it again with p" in shown


def test_a_damaged_blob_that_was_written_anew_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    blobs = {name: tmp_path / name for name in ("damaged", "mended", "gone")}
    for name, at in (("damaged", NOW - 900), ("mended", NOW + 900)):
        blobs[name].write_bytes(b"x")
        os.utime(blobs[name], (at, at))
    damaged = [{"path": str(path), "text": "its hash is another", "files": []} for path in blobs.values()]
    events = (
        Started(at=NOW - 9, pid=1, ticks=1, host="x"),
        Running(at=NOW - 8, device="cpu"),
        Finished(at=NOW, seconds=8),
    )
    result: dict[str, Any] = {"folder": "/hub", "verified": 3, "damaged": damaged}
    make_job(jobs_root(), "aaaa01", "cache", {"verify": True}, events, result=result)
    make_job(jobs_root(), "aaaa02", "cache", {}, events, result={**result, "verified": None, "damaged": []})
    make_job(jobs_root(), "aaaa03", "cache", {"verify": True}, events)
    found = {row.short_id: verified_by(row) for row in History(jobs_root()).rows()}
    assert found["aaaa02"] is None
    assert found["aaaa03"] is None
    told = found["aaaa01"]
    assert told is not None
    assert [each.path for each in told.damaged] == [str(blobs["damaged"])]
    assert (told.folder, told.blobs, told.ended) == ("/hub", 3, NOW)


async def test_without_a_cache_the_screen_says_which_key_begins_one(
    bench: Any, until: Any, picture: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    async with bench().run_test(size=(80, 24)) as pilot:
        await opened(pilot, until)
        shown = text(picture, pilot)
        assert "there is no cache here" in shown
        assert "nothing in the cache yet: p pulls a model" in shown
        await pilot.press("d", "O", "v", "enter", "y")
        assert isinstance(pilot.app.screen, CacheScreen)
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))


async def test_enter_on_a_revision_opens_it_as_a_model(
    bench: Any, until: Any, cache: HandMade, make_model: Any
) -> None:
    folder = make_model()
    cache.add("org/whole", NEW, {each.name: each.read_bytes() for each in folder.iterdir()}, ref="main")
    async with bench().run_test(size=(80, 24)) as pilot:
        table = await opened(pilot, until)
        assert table.move_to(str(cache.folder / "models--org--whole"))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, CacheRepoScreen) and pilot.app.screen._key)
        await pilot.press("enter")
        await until(pilot, lambda: read(pilot))
        assert pilot.app.screen.view.location.folder == cache.folder / "models--org--whole" / "snapshots" / NEW


async def test_the_page_of_a_repository_comes_back_and_one_that_was_freed_is_told(
    bench: Any, until: Any, toasts: Any, cache: HandMade
) -> None:
    path = next(str(each) for each in sorted(cache.folder.glob("models--*")) if (each / "snapshots").is_dir())
    page = Stop("CacheRepoScreen", {"repository": path})
    app = bench()
    app.left = Left((Stop("cache"), page))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, CacheRepoScreen))
        assert stops_of(app)[1:] == (Stop("cache"), page)
    gone = bench()
    gone.left = Left((Stop("cache"), Stop("CacheRepoScreen", {"repository": f"{path}-gone"})))
    async with gone.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "the repository is no longer in the cache" in toasts(pilot))


async def test_a_push_from_the_cache_has_the_folder_of_the_snapshot_and_where_it_came_from(
    bench: Any, until: Any, cache: HandMade
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await opened(pilot, until)
        for keys, commit in ([], NEW), (["enter"], OLD):
            await pilot.press(*keys)
            if keys:
                await until(pilot, lambda: pilot.app.screen.query_one(RevisionTable).move_to(OLD))
                await until(pilot, lambda: pilot.app.screen.place.endswith(OLD))
            deeds = {name: deed for name, _, deed in Palette(pilot.app.screen).entries()}
            deeds["push"]()
            await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.focused)
            texts = pilot.app.screen.state.texts
            assert texts["folder"] == str(cache.folder / "models--org--m" / "snapshots" / commit)
            assert texts["model"] == "org/m"
            pilot.app.pop_screen()
            await until(pilot, lambda: not isinstance(pilot.app.screen, LaunchScreen))
