"""A hub as pictures: repositories, tokens, traffic and health, and how one is started. All of it is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.actions.registry_show import RegistryView, Traffic
from hfbench.errors import MissingError
from hfbench.registry.accounts import Token, User
from hfbench.registry.upkeep.facts import NamespaceUse, RepoUse, Use
from hfbench.screens import registry
from hfbench.screens.registry import RegistryScreen
from hfbench.screens.registry_asks import RegistryShown, TrafficSeen
from hfbench.screens.registry_jobs import RegistryJobsRead
from hfbench.units import GIB, MIB
from hfbench.widgets.registry_lines import Upkeep

HUB = "/srv/hub"
DAY = 86400.0
TRAFFIC = Traffic(
    workers=4, running=3, sent_bytes=812 * GIB, received_bytes=96 * GIB, answers={"2xx": 91_204, "4xx": 311, "5xx": 2}
)


def token(id: int, user: str, scope: str, *, expires: float | None, used: float | None) -> Token:
    return Token(
        id=id,
        user=user,
        name=f"box {id}",
        prefix=f"hfb_Ab{id}xY",
        scope=scope,
        namespaces=(),
        created=0.0,
        expires=expires,
        last_used=used,
    )


VIEW = RegistryView(
    folder=HUB,
    url="https://hub.lab:8080",
    traffic=TRAFFIC,
    use=Use(
        folder=HUB,
        database="SQLite",
        storage="xorbs",
        serving=True,
        repos=3,
        commits=41,
        users=3,
        tokens=4,
        blobs=212,
        told_bytes=96 * GIB,
        kept_bytes=31 * GIB,
        blob_bytes=2 * GIB,
        xorb_bytes=29 * GIB,
        cache_bytes=40 * GIB,
        upload_bytes=3 * GIB,
        damaged_bytes=12 * MIB,
        free_bytes=812 * GIB,
        namespaces=(
            NamespaceUse(name="team", repos=2, bytes=95 * GIB, quota=100 * GIB),
            NamespaceUse(name="alice", repos=1, bytes=GIB, quota=0),
        ),
        largest=(
            RepoUse("model", "team/my-finetune-v3", True, 31, 80 * GIB, 1_204),
            RepoUse("model", "team/qwen2-7b", False, 8, 15 * GIB, 77),
            RepoUse("dataset", "alice/prompts", False, 2, GIB, 0),
        ),
    ),
    tokens=(
        token(1, "root", "write", expires=None, used=NOW - 120),
        token(2, "alice", "write", expires=NOW + 90 * DAY, used=NOW - 3 * DAY),
        token(3, "box-7", "read", expires=NOW + 3 * DAY, used=NOW - 60),
        token(4, "box-7", "read", expires=NOW - DAY, used=None),
    ),
    users=(
        User(name="alice", is_admin=False, disabled=False, roles={"team": "write"}),
        User(name="box-7", is_admin=False, disabled=True, roles={"team": "read"}),
        User(name="root", is_admin=True, disabled=False, roles={}),
    ),
)
FSCK = Upkeep(job="a1cf9e", text="1 thing damaged, 1 of them missed by a revision", at=NOW - 2 * DAY, fine=False)
GC = Upkeep(job="77b2d0", text="4.10 GiB freed", at=NOW - 9 * DAY, fine=True)


def shown(message: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub is this one, whatever is on this machine."""
    monkeypatch.setattr(registry, "show_registry", lambda folder, stopped, post: post(message))
    traffic = TrafficSeen(TRAFFIC, 5.0)
    monkeypatch.setattr(registry, "watch_traffic", lambda folder, stopped, post: post(traffic))


async def opened(pilot: Pilot[None], until: Any, tab: str) -> None:
    app: Any = pilot.app
    await pilot.press("8")
    await until(pilot, lambda: isinstance(app.screen, RegistryScreen) and app.screen.looked and app.screen._samples)
    app.screen.post_message(RegistryJobsRead({"registry.fsck": FSCK, "registry.gc": GC}))
    await until(pilot, lambda: app.screen._upkeep)
    while app.screen.tab != tab:
        await pilot.press("right")


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
def test_tokens(take: Any, until: Any, place: Path, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    shown(RegistryShown(VIEW), monkeypatch)

    async def scene(pilot: Pilot[None]) -> None:
        await opened(pilot, until, "Tokens")

    take(look, scene)


@pytest.mark.parametrize(
    ("tab", "look"),
    [(tab, LOOKS[at].values[0:3]) for tab, at in (("Repositories", 0), ("Users", 0), ("Live", 0), ("Health", 1))],
    ids=["repositories", "users", "live", "health"],
)
def test_tab(take: Any, until: Any, place: Path, tab: str, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    shown(RegistryShown(VIEW), monkeypatch)

    async def scene(pilot: Pilot[None]) -> None:
        await opened(pilot, until, tab)

    take(look, scene)


def test_no_hub(take: Any, until: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    absent = MissingError("there is no hub", where=str(place / "home" / "registry"), remedy="make one")
    shown(RegistryShown(error=absent), monkeypatch)

    async def scene(pilot: Pilot[None]) -> None:
        app: Any = pilot.app
        await pilot.press("8")
        await until(pilot, lambda: isinstance(app.screen, RegistryScreen) and app.screen.absent)

    take(LOOKS[0].values, scene)
