"""What each token may do on each route: a route that is missing in the table fails."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import Any, NamedTuple

import httpx2
import pytest
from hub_inside import REPO, hub_inside
from hub_process import HubProcess
from route_rules import ADMIN, BLIND, OPEN, RULES, SEALED, SOMEBODY, VALUES, WRITER, named

from hfbench.registry.administration import create_token, list_tokens, revoke_token, set_disabled
from hfbench.registry.hub import Hub
from hfbench.registry.routing import Route, router

Inside = tuple[Hub, httpx2.AsyncClient]


class Tokens(NamedTuple):
    """Tokens that end in different ways, and one that only reads, of somebody who writes."""

    reading: str
    elsewhere: str
    expired: str
    revoked: str
    disabled: str


@pytest.fixture(scope="module")
def tokens(resting: HubProcess) -> Tokens:
    settings = resting.settings
    made = Tokens(
        create_token(settings, "writer", name="reading", scope="read"),
        create_token(settings, "writer", name="elsewhere", namespaces=["writer"]),
        create_token(settings, "writer", name="expired", seconds=0.0),
        create_token(settings, "writer", name="revoked"),
        resting.stranger,
    )
    revoke_token(settings, next(row.id for row in list_tokens(settings, "writer") if row.name == "revoked"))
    set_disabled(settings, "stranger", True)
    return made


async def ask(client: httpx2.AsyncClient, route: Route, token: str) -> int:
    path = route.pattern
    for name, value in VALUES.items():
        path = path.replace(f"{{{name}}}", value)
    path = path.removeprefix("/models") if path.startswith("/models/") else path
    headers = {"authorization": f"Bearer {token}" if token else ""}
    answer = await client.request(route.method, path, content=RULES[named(route)].body, headers=headers)
    assert answer.status_code < 500 or "info/refs" in path, answer.text
    return answer.status_code


def test_the_table_has_every_route_and_no_other() -> None:
    assert {named(route) for route in router.routes} == RULES.keys()


@pytest.mark.parametrize("route", router.routes, ids=named)
async def test_a_route_lets_in_whom_it_should(
    resting: HubProcess, inside: Inside, tokens: Tokens, route: Route
) -> None:
    _, client = inside
    who = RULES[named(route)].who
    for name in ("doomed", "moving"):
        await client.post("/api/repos/create", json={"name": name, "organization": "team"})
    ended = [await ask(client, route, token) for token in (tokens.expired, tokens.revoked, tokens.disabled, "hfb_none")]
    nobody, reading, reader = [await ask(client, route, token) for token in ("", tokens.reading, resting.reader)]
    if who == BLIND:
        assert not {401, 403} & {reading, reader} or nobody == 401
        return
    if who == SEALED:
        assert {*ended, nobody, reading, reader, await ask(client, route, resting.writer)} <= {401, 403}
        return
    assert ended == [401] * 4
    refused = {OPEN: (), SOMEBODY: (nobody,), WRITER: (nobody, reading, reader), ADMIN: (nobody, reading, reader)}[who]
    assert [status in (401, 403) for status in (nobody, reading, reader)] == [
        status in refused for status in (nobody, reading, reader)
    ]
    assert (nobody == 401) == bool(refused)
    if who == WRITER:
        assert await ask(client, route, tokens.elsewhere) == 403
    assert (await ask(client, route, resting.writer) in (401, 403)) == (who == ADMIN)
    assert await ask(client, route, resting.admin) not in (401, 403)


async def test_a_token_ends_within_a_second_of_its_revocation_and_its_links_with_it(
    resting: HubProcess, inside: Inside
) -> None:
    _, client = inside
    secret = await asyncio.to_thread(create_token, resting.settings, "writer", name="brief")
    headers = {"authorization": f"Bearer {secret}"}
    asked: dict[str, Any] = {"operation": "upload", "objects": [{"oid": "1" * 64, "size": 3}]}
    told = (await client.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked, headers=headers)).json()
    link = told["objects"][0]["actions"]["upload"]["href"]
    token = (await client.get(f"/api/models/{REPO}/xet-write-token/main", headers=headers)).json()["accessToken"]
    rows = await asyncio.to_thread(list_tokens, resting.settings, "writer")
    id = next(row.id for row in rows if row.name == "brief")
    await asyncio.to_thread(revoke_token, resting.settings, id)
    begun = time.monotonic()
    assert (await client.get("/api/whoami-v2", headers=headers)).status_code == 401
    assert (await client.put(link, content=b"abc")).status_code == 403
    sealed = {"authorization": f"Bearer {token}"}
    assert (await client.post("/_cas/v1/shards", content=b"", headers=sealed)).status_code == 401
    assert time.monotonic() - begun < 1


async def test_no_token_is_in_a_dump_of_the_database(resting: HubProcess) -> None:
    async with hub_inside(resting.settings, resting.writer) as (_, client):
        await client.get("/api/whoami-v2")
    with sqlite3.connect(resting.settings.layout.database) as connection:
        dump = "\n".join(connection.iterdump())
    assert "hfb_" in dump, "prefixes are there, for people to tell their tokens apart"
    for secret in (resting.admin, resting.writer, resting.reader, resting.stranger):
        assert secret not in dump
        assert secret[10:] not in dump
