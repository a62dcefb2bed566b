"""The Registry screen: a real hub in a folder, its tokens made and revoked, checked by a job, and its traffic."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, Label

from hfbench.actions.registry_show import Traffic
from hfbench.errors import UsageError
from hfbench.paths import registry_root
from hfbench.screens import registry as screen
from hfbench.screens.confirm import AskText, Confirm
from hfbench.screens.job import JobScreen
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.registry import RegistryScreen, RegistryTable
from hfbench.screens.registry_token import ShowOnce, parsed
from hfbench.widgets.glyphs import ASCII
from hfbench.widgets.registry_lines import Sampled, live_lines

pytest.importorskip("aiosqlite")


@pytest.fixture
def hub(tmp_path: Path) -> str:
    """This user's own hub with two users; the administrator's token."""
    from hfbench.registry.administration import add_user, grant_role
    from hfbench.registry.founding import found
    from hfbench.registry.settings import Settings

    settings = Settings(folder=str(registry_root()), port=18_080)
    secret = found(settings, "root")
    add_user(settings, "alice")
    grant_role(settings, "alice", "team", "write")
    return secret


def text(picture: Any, pilot: Any) -> str:
    return " ".join("\n".join(picture(pilot)).split())


async def opened(pilot: Any, until: Any) -> RegistryScreen:
    """The screen, read."""
    await pilot.press("8")
    await until(pilot, lambda: isinstance(pilot.app.screen, RegistryScreen) and pilot.app.screen.looked)
    found: RegistryScreen = pilot.app.screen
    return found


def rows(page: RegistryScreen) -> list[dict[str, str]]:
    table = page.table
    assert isinstance(table, RegistryTable)
    return [dict(table.rows[n].cells) for n in range(table.shown)]


async def test_without_a_hub_two_commands_are_told_and_no_key_needs_one(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        page = await opened(pilot, until)
        shown = text(picture, pilot)
        assert "hfbench registry serve" in shown
        assert "hf upload my-name/my-model ./my-model" in shown
        assert "no hub in" in shown
        await pilot.press("n", "x", "f", "g", "s", "e", "right")
        assert pilot.app.screen is page
        assert page.tab == "Repositories"


async def test_a_token_is_made_shown_once_and_revoked(
    bench: Any, until: Any, picture: Any, toasts: Any, hub: str
) -> None:
    from hfbench.registry.administration import list_tokens
    from hfbench.registry.settings import read_settings

    async with bench().run_test(size=(80, 24), notifications=True) as pilot:
        page = await opened(pilot, until)
        assert "no repository yet" in text(picture, pilot)
        await pilot.press("right")
        assert [row["user"] for row in rows(page)] == ["root"]
        assert hub not in text(picture, pilot)
        assert hub[:10] in text(picture, pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        assert "without it: never expires" in text(picture, pilot)
        await pilot.press("ctrl+u", *"write", "enter")
        await until(pilot, lambda: "'write' names no user" in text(picture, pilot))
        await pilot.press("ctrl+u", *"nobody", "enter")
        await until(pilot, lambda: "there is no user 'nobody'" in text(picture, pilot))
        assert pilot.app.screen.query_one(Input).value == "nobody", "what was typed stays to be mended"
        await pilot.press("ctrl+u", *"alice", "space", *"read", "space", *"30d", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ShowOnce) and pilot.app.screen.query(Label))
        secret = pilot.app.screen._secret
        assert secret in text(picture, pilot)
        await pilot.press("space")
        await until(pilot, lambda: pilot.app.screen is page and len(rows(page)) == 2)
        made = rows(page)[1]
        assert (made["user"], made["scope"], made["expires"]) == ("alice", "read", "in 30 d")
        assert secret not in text(picture, pilot)
        assert secret.startswith(made["prefix"])
        await pilot.press("end", "x")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("n")
        await pilot.press("x")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        assert len(await asyncio.to_thread(list_tokens, read_settings(registry_root()))) == 2
        await pilot.press("y")
        await until(pilot, lambda: pilot.app.screen is page and len(rows(page)) == 1)
        await until(pilot, lambda: "token 2 lets nobody in any more" in toasts(pilot))
        assert len(await asyncio.to_thread(list_tokens, read_settings(registry_root()))) == 1


async def test_users_with_roles_health_and_a_check_by_a_job(bench: Any, until: Any, picture: Any, hub: str) -> None:
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        page = await opened(pilot, until)
        await pilot.press("right", "right")
        assert {row["user"]: row["roles"] for row in rows(page)} == {
            "alice": "team:write",
            "root": "everything, in every namespace",
        }
        await pilot.press("left", "left", "left")
        shown = text(picture, pilot)
        assert "not served on this machine" in shown
        assert "never here: f checks every stored byte" in shown
        assert all(key in shown for key in ("n new token", "f fsck", "g gc", "s stats", "e env", "q quit"))
        await pilot.press("f")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        await until(pilot, lambda: any(row.state.over for row in pilot.app.machine.known_jobs))
        await pilot.press("escape")
        await until(pilot, lambda: "last fsck ok clean" in text(picture, pilot))
        await pilot.press("g")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        form = pilot.app.screen.state.values
        assert (str(form["folder"]), form["dry_run"]) == (str(registry_root()), True)


async def test_e_copies_the_lines_of_env_and_a_hub_elsewhere_can_be_shown(
    bench: Any, until: Any, hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    async def keep(self: RegistryScreen, told: str) -> None:
        copied.append(told)

    monkeypatch.setattr(RegistryScreen, "copy", keep)
    async with bench().run_test(size=(80, 24)) as pilot:
        page = await opened(pilot, until)
        await pilot.press("e")
        await until(pilot, lambda: copied)
        assert copied[0].splitlines()[0] == "export HF_ENDPOINT=http://127.0.0.1:18080"
        await pilot.press("F")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        await pilot.press(*["backspace"] * len(page.folder), *str(tmp_path / "other"), "enter")
        await until(pilot, lambda: page.folder == str(tmp_path / "other") and page.looked)
        assert page.view is None
        assert page.absent
        await pilot.press("F")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        await pilot.press(*["backspace"] * len(page.folder), *"http://lab:8080", "enter")
        await until(pilot, lambda: any("on the machine of its folder" in n.message for n in pilot.app._notifications))
        assert page.folder == str(tmp_path / "other")


async def test_traffic_is_read_from_what_workers_left(
    bench: Any, until: Any, picture: Any, hub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = registry_root() / "run" / "7-aa.json"
    told = {"requests": [["/x", 200, 5], ["/x", 501, 2]], "seconds": {}, "received_bytes": 0, "running": 3}
    counters.write_text(json.dumps({**told, "sent_bytes": 5 << 20}))
    async with bench().run_test(size=(80, 24)) as pilot:
        page = await opened(pilot, until)
        await pilot.press("left", "left")
        assert page.tab == "Live"
        await until(pilot, lambda: page._samples)
        shown = text(picture, pilot)
        assert "1 worker now 3 requests being answered sent 5.00 MiB in all" in shown
        assert "5 of 2xx, 2 of 501" in shown
        assert "log tells why" not in shown


def test_rates_are_taken_over_what_moved_and_end_when_nothing_does() -> None:
    def lines(*sent: int) -> str:
        samples = [
            Sampled(traffic=Traffic(workers=1, running=1, sent_bytes=n, received_bytes=0, answers={}), at=2.0 * i)
            for i, n in enumerate(sent)
        ]
        return "\n".join("".join(part for part, _ in line) for line in live_lines(samples, None, 100, ASCII))

    assert "2.00 KiB/s now" in lines(0, 4096)
    assert "683 B/s now" in lines(0, 0, 4096, 4096)
    assert "/s now" not in lines(4096, 4096)
    assert "/s now" not in lines(4096)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("alice", ("alice", "write", "")),
        ("alice read", ("alice", "read", "")),
        ("alice read 30d", ("alice", "read", "2592000s")),
        (" bob  write 12h ", ("bob", "write", "43200s")),
    ],
)
def test_a_line_tells_user_scope_and_lifetime(given: str, meant: tuple[str, str, str]) -> None:
    assert parsed(given) == meant


@pytest.mark.parametrize("given", ["", "alice admin", "alice read soon", "alice read 1d more", "alice read 0d"])
def test_a_line_that_tells_something_else_is_refused(given: str) -> None:
    with pytest.raises(UsageError):
        parsed(given)


def test_a_look_that_was_stopped_posts_nothing_more(hub: str) -> None:
    posted: list[Any] = []
    stop = threading.Event()
    stop.set()
    screen.watch_traffic(str(registry_root()), stop.is_set, posted.append)
    assert posted == []
