"""A copy of a hub that is being served is a hub: it is checked, served and read as the first one was."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from hub_inside import REPO, content_of, hub_inside, send_text, send_whole, send_xet
from hub_process import HubProcess
from hub_upkeep import Inside, opened

from hfbench.errors import UsageError
from hfbench.registry.hub import Hub
from hfbench.registry.settings import read_settings
from hfbench.registry.upkeep.backup import back_up
from hfbench.registry.upkeep.facts import BackedUp
from hfbench.registry.upkeep.fsck import check


async def backup(hub: Hub, folder: Path, way: str = "auto") -> BackedUp:
    return await back_up(hub, folder, way, lambda *told: None)


async def test_a_backup_of_either_database_is_a_hub_with_every_byte(any_hub: HubProcess, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    contents = {f"f{seed}": content_of(seed) for seed in range(3)}
    async with opened(any_hub) as (hub, client):
        for deed, (path, content) in zip((send_whole, send_text, send_xet), contents.items(), strict=True):
            await deed(client, path, content)
        done = await backup(hub, copy)
        assert (done.files, done.known, done.missing) == (3, 0, ())
        await send_whole(client, "later", content_of(9))
    settings = read_settings(copy)
    assert stat.S_IMODE(settings.layout.secret.stat().st_mode) == 0o600
    async with hub_inside(settings, any_hub.reader) as (hub, client):
        assert not (await check(hub, quick=False, repair=False, tell=lambda *told: None)).damages
        for path, content in contents.items():
            assert (await client.get(f"/{REPO}/resolve/main/{path}")).content == content
        assert (await client.get(f"/{REPO}/resolve/main/later")).status_code == 404, "it came after the backup"
        assert (await client.get("/api/whoami-v2")).json()["name"] == "reader", "tokens are in it"


async def test_a_second_backup_brings_what_is_new(inside: Inside, tmp_path: Path) -> None:
    hub, client = inside
    await send_whole(client, "a", content_of(1))
    await backup(hub, tmp_path / "copy")
    await send_whole(client, "b", content_of(2))
    done = await backup(hub, tmp_path / "copy")
    assert (done.files, done.known, done.copied + done.cloned) == (2, 1, 1)
    async with hub_inside(read_settings(tmp_path / "copy"), "") as (_, copy):
        assert (await copy.get(f"/{REPO}/resolve/main/b")).content == content_of(2)


async def test_a_linked_backup_is_the_same_file_and_read_only(inside: Inside, resting: HubProcess) -> None:
    hub, client = inside
    await send_whole(client, "a", content_of(1))
    folder = hub.layout.root.parent / "linked"
    assert (await backup(hub, folder, "link")).linked == 1
    name = hashlib.sha256(content_of(1)).hexdigest()
    told = read_settings(folder).layout.blob(name).stat()
    assert told.st_ino == resting.settings.layout.blob(name).stat().st_ino
    assert stat.S_IMODE(told.st_mode) == 0o444


async def test_a_missing_file_is_told_and_the_rest_is_copied(inside: Inside, tmp_path: Path) -> None:
    hub, client = inside
    await send_whole(client, "a", content_of(1))
    await send_whole(client, "b", content_of(2))
    name = hashlib.sha256(content_of(1)).hexdigest()
    hub.layout.blob(name).unlink()
    done = await backup(hub, tmp_path / "copy")
    assert done.missing == (name,)
    assert read_settings(tmp_path / "copy").layout.blob(hashlib.sha256(content_of(2)).hexdigest()).exists()


async def test_a_backup_overwrites_nothing_that_is_no_backup(inside: Inside, tmp_path: Path) -> None:
    hub, _ = inside
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="no backup"):
        await backup(hub, tmp_path)
    with pytest.raises(UsageError, match="in the hub itself"):
        await backup(hub, hub.layout.root / "copy")
    assert os.listdir(tmp_path) == ["notes.txt"]
