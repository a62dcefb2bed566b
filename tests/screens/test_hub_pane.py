"""The hubs on the Models screen: a real one that is searched, opened and pulled from, and others that misbehave."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hub_lab import Lab, stock
from hub_process import free_port, make_hub
from pages import brought_to_front, judged, read, text
from small_hub_model import write_model
from stand_in_hub import stand_in

from hfbench.config import Config, read_config
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.snapshot import read_job
from hfbench.paths import jobs_root
from hfbench.screens import hub_asks
from hfbench.screens.confirm import AskText
from hfbench.screens.hub_pane import HubPane
from hfbench.screens.job import JobScreen
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.files import FilesTab
from hfbench.screens.models import ModelsScreen
from hfbench.widgets.record_table import RecordTable

pytest.importorskip("huggingface_hub")
pytest.importorskip("granian")

STOCK = """
from huggingface_hub import HfApi
api = HfApi()
api.create_repo("team/small", private=True)
api.upload_folder(repo_id="team/small", folder_path={model!r})
for number in range(5):
    api.create_repo(f"team/other-{{number}}")
api.upload_file(repo_id="team/other-3", path_in_repo="README.md", path_or_fileobj=b"---\\ntags: [odd]\\n---\\n")
api.create_repo("team/closed")
api.upload_folder(repo_id="team/closed", folder_path={model!r})
api.update_repo_settings("team/closed", gated="manual")
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One hub for all tests of the file: a private model, a gated one, and five without weights."""
    folder = tmp_path_factory.mktemp("lab")
    model, hub = write_model(folder / "model"), make_hub(folder)
    hub.start()
    try:
        stock(hub.url, hub.writer, STOCK.format(model=str(model)))
        yield Lab(hub, model, "")
    finally:
        hub.stop()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network, a cache of the test's own, and an empty folder to stand in."""
    names = ("HF_ENDPOINT", "HF_TOKEN", "TRANSFORMERS_OFFLINE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    for name in ("HF_HUB_OFFLINE", *names, *map(str.lower, names[3:])):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def endpoint(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Config]:
    """The configuration with the endpoint `lab` at an address, and this token for it."""

    def make(url: str, token: str = "") -> Config:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "config.toml").write_text(f'[endpoints.lab]\nurl = "{url}"\ntoken_env = "LAB_TOKEN"\n')
        monkeypatch.setenv("LAB_TOKEN", token)
        return read_config()

    return make


async def at_lab(pilot: Any, until: Any) -> HubPane:
    """The endpoint `lab` in front, and the cursor on it."""
    await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen) and len(pilot.app.screen.listings) == 3)
    sources = pilot.app.screen.query_one("#sources", RecordTable)
    pilot.app.screen.set_focus(sources)
    assert sources.move_to("hub:lab")
    await pilot.pause()
    pane: HubPane = pilot.app.screen.query_one(HubPane)
    return pane


def names(pane: HubPane) -> list[str]:
    return [each.id for each in pane.page.models] if pane.page else []


def rests(pane: HubPane) -> bool:
    return pane.page is not None and pane.page.asked and not pane.busy


def many(count: int) -> Callable[[BaseHTTPRequestHandler], None]:
    """A hub that always answers with these many models."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = json.dumps([{"id": f"org/model-{number}"} for number in range(count)]).encode()
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


async def test_a_hub_is_asked_when_enter_is_pressed_on_it_and_not_before(
    bench: Any, until: Any, picture: Any, endpoint: Any
) -> None:
    with stand_in(answers={"/api/models": many(3)}) as hub:
        async with bench(config=endpoint(hub.url)).run_test(size=(80, 24)) as pilot:
            pane = await at_lab(pilot, until)
            assert "enter lists models, s searches" in text(picture, pilot)
            assert hub.asked == []
            await pilot.press("enter")
            await until(pilot, lambda: rests(pane))
            assert names(pane) == ["org/model-0", "org/model-1", "org/model-2"]
            assert "3 models" in text(picture, pilot)


async def test_s_and_the_palette_search_the_hub_that_is_meant_where_none_is_named(
    bench: Any, until: Any, picture: Any, endpoint: Any, home: Path
) -> None:
    with stand_in(answers={"/api/models": many(3)}) as hub:
        endpoint(hub.url)
        with (home / "config" / "config.toml").open("a") as file:
            file.write('[hub]\nendpoint = "lab"\n')
        async with bench(config=read_config()).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: len(pilot.app.screen.listings) == 3)
            screen = pilot.app.screen
            await pilot.press("s", *"word")
            assert screen.endpoint == "lab"
            assert "search: word" in text(picture, pilot)
            await pilot.press("escape", "2", "colon", *"search a hub", "enter")
            await until(pilot, lambda: pilot.app.screen is screen and screen.hub.is_typing)
            assert hub.asked == []
            await pilot.press("enter")
            await until(pilot, lambda: rests(screen.hub))
            assert screen.chosen_model == "lab:org/model-0"


async def test_words_tags_and_orders_are_asked_of_the_hub(
    bench: Any, until: Any, picture: Any, endpoint: Any, lab: Lab
) -> None:
    async with bench(config=endpoint(lab.url, lab.hub.writer)).run_test(size=(80, 24)) as pilot:
        pane = await at_lab(pilot, until)
        await pilot.press("s", *"author:team other", "enter")
        await until(pilot, lambda: rests(pane))
        assert sorted(names(pane)) == [f"team/other-{number}" for number in range(5)]
        await pilot.press("o")
        await until(pilot, lambda: rests(pane))
        assert "most downloads first" in text(picture, pilot)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        await pilot.press(*"odd", "enter")
        await until(pilot, lambda: rests(pane) and len(names(pane)) == 1)
        assert names(pane) == ["team/other-3"]
        await pilot.press("s", "ctrl+u", *"small", "enter")
        await until(pilot, lambda: rests(pane))
        assert "nothing matches; s searches" in text(picture, pilot)  # the tag is still asked for


async def test_pages_follow_as_the_cursor_goes_down_and_bring_each_model_once(
    bench: Any, until: Any, picture: Any, endpoint: Any, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_asks, "PAGE", 3)
    async with bench(config=endpoint(lab.url, lab.hub.writer)).run_test(size=(80, 24)) as pilot:
        pane = await at_lab(pilot, until)
        await pilot.press("enter")
        await until(pilot, lambda: rests(pane))
        assert len(names(pane)) == 3
        assert "3 models, and more" in text(picture, pilot)
        await pilot.press("end")
        await until(pilot, lambda: rests(pane) and len(names(pane)) == 6)
        await pilot.press("n")
        await until(pilot, lambda: rests(pane) and len(names(pane)) == 7)
        assert len(set(names(pane))) == 7
        assert not pane.check_action("more", ())


async def test_a_model_is_opened_looked_through_and_pulled(
    bench: Any, until: Any, picture: Any, endpoint: Any, lab: Lab, tmp_path: Path
) -> None:
    async with bench(config=endpoint(lab.url, lab.hub.writer), watch=True).run_test(size=(80, 24)) as pilot:
        pane = await at_lab(pilot, until)
        await pilot.press("s", *"small", "enter")
        await until(pilot, lambda: rests(pane))
        assert "private" in text(picture, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: judged(pilot))
        screen = pilot.app.screen
        assert screen.reference == "lab:team/small"
        assert screen.view.tensors == 21
        assert "! weights are on lab, not here: p pulls them" in text(picture, pilot)
        await brought_to_front(pilot, until, FilesTab)
        assert text(picture, pilot).count("~ header") == 2
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.state.command == "hfbench pull lab:team/small"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen and not screen.view.left_on and read(pilot))
        assert "~ header" not in text(picture, pilot)
        assert screen.view.location.folder.is_relative_to(tmp_path / "hf")
        assert not screen.check_action("pull", ())


async def test_a_revision_that_is_not_there_is_told_below_the_search(
    bench: Any, until: Any, picture: Any, endpoint: Any, lab: Lab
) -> None:
    async with bench(config=endpoint(lab.url, lab.hub.writer)).run_test(size=(80, 24)) as pilot:
        pane = await at_lab(pilot, until)
        await pilot.press("s", *"small", "enter")
        await until(pilot, lambda: rests(pane))
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        await pilot.press("ctrl+u", *"mian", "enter")
        await until(pilot, lambda: rests(pane) and "there is no revision" in text(picture, pilot))
        assert isinstance(pilot.app.screen, ModelsScreen)


async def test_a_gated_model_says_so_and_where_to_ask(
    bench: Any, until: Any, picture: Any, endpoint: Any, lab: Lab
) -> None:
    async with bench(config=endpoint(lab.url, lab.hub.stranger)).run_test(size=(80, 24)) as pilot:
        pane = await at_lab(pilot, until)
        await pilot.press("s", *"closed", "enter")
        await until(pilot, lambda: rests(pane))
        assert "gated, its owner lets people in: ask at" in text(picture, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: rests(pane) and "is gated" in text(picture, pilot))
        assert isinstance(pilot.app.screen, ModelsScreen)


@pytest.mark.parametrize("trouble", ["token", "closed port", "offline", "no hub"])
async def test_what_keeps_a_list_from_coming_is_told_in_place_and_u_asks_again(
    bench: Any, until: Any, picture: Any, endpoint: Any, lab: Lab, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/html")
        handler.send_header("content-length", "6")
        handler.end_headers()
        handler.wfile.write(b"<html>")

    told = {
        "token": "the token",
        "closed port": "cannot be reached",
        "offline": "HF_HUB_OFFLINE",
        "no hub": "is not a hub",
    }
    with stand_in(answers={"/api/models": page}) as other:
        urls = {"closed port": f"http://127.0.0.1:{free_port()}", "no hub": other.url}
        config = endpoint(urls.get(trouble, lab.url), "hfb_wrong" if trouble == "token" else "")
        if trouble == "offline":
            monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        async with bench(config=config).run_test(size=(80, 24)) as pilot:
            pane = await at_lab(pilot, until)
            await pilot.press("enter")
            await until(pilot, lambda: rests(pane))
            assert pane.page is not None
            assert pane.page.error is not None
            assert pane.page.error.found.split()[0] in text(picture, pilot)
            assert told[trouble] in str(pane.page.error)
            before = pane.page.error
            await pilot.press("u")
            await until(pilot, lambda: rests(pane) and pane.page.error is not before)


async def test_a_hub_that_hangs_is_left_at_once_and_its_child_ends(
    bench: Any, until: Any, picture: Any, endpoint: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}")
        async with bench(config=config).run_test(size=(80, 24)) as pilot:
            pane = await at_lab(pilot, until)
            await pilot.press("enter")
            await until(pilot, lambda: "esc stops" in text(picture, pilot))
            asked, _ = silent.accept()  # the child has sent its question and waits
            with asked:
                begun = time.monotonic()
                await pilot.press("escape")
                assert not pane.busy
                assert "stopped; u asks again" in text(picture, pilot)
                asked.settimeout(10)
                while asked.recv(4096):
                    pass  # ends only when the other side is closed
                assert time.monotonic() - begun < 5
            assert isinstance(pilot.app.screen, ModelsScreen)


async def test_escape_while_a_model_is_opened_cancels_its_job(
    bench: Any, until: Any, picture: Any, endpoint: Any
) -> None:
    with stand_in(answers={"/api/models": many(1), "/api/models/org/model-0/revision/main": hang}) as hub:
        async with bench(config=endpoint(hub.url)).run_test(size=(80, 24)) as pilot:
            pane = await at_lab(pilot, until)
            await pilot.press("enter")
            await until(pilot, lambda: rests(pane))
            await pilot.press("enter")
            await until(pilot, lambda: any("/revision/" in path for path in hub.paths()))
            assert "opening lab:org/model-0" in text(picture, pilot)
            await pilot.press("escape")
            assert not pane.busy
            [id] = job_ids(jobs_root())
            await until(pilot, lambda: read_job(JobDirectory(jobs_root() / id)).state.value == "cancelled")
            assert not isinstance(pilot.app.screen, ModelScreen)


def hang(handler: BaseHTTPRequestHandler) -> None:
    """Answers nothing until the other side is gone."""
    handler.connection.settimeout(60)
    handler.connection.recv(1)
