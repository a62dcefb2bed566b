"""Whatever is sent to whatever route is answered, and never by a failure of the hub."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from hub_inside import REPO, content_of, hub_inside, raw_answer, send_whole
from hub_process import HubProcess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from route_rules import RULES, VALUES, named

from hfbench.registry.routing import Route, router

WORDS = st.sampled_from(
    ["main", "x", "team", "deeds", "deeds.git", "models", "datasets", "pending", "a%2Fb", "%00", "%FF", "..",
     "refs%2Fheads%2Fmain", "%ED%A0%80", "ü", "-1", "", "0" * 40, "0" * 64]
)  # fmt: skip
ODD = ["\ud800", "\0", "team/deeds", "0" * 64, "upload", "base64", "x" * 5000, -1, 2**70, "sha256", "auto"]
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8)
KEYS = st.sampled_from(
    [
        "name",
        "organization",
        "type",
        "files",
        "path",
        "size",
        "sample",
        "objects",
        "oid",
        "operation",
        "parts",
        "user",
        "partNumber",
        "status",
        "tag",
        "startingPoint",
        "message",
        "key",
        "value",
        "content",
        "gated",
        "private",
        "fromRepo",
        "toRepo",
        "transfers",
        "visibility",
        "summary",
        "parentCommit",
        "strict",
    ]
)
JSONS = st.recursive(
    ATOMS | st.sampled_from(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)
QUERIES = st.dictionaries(
    st.sampled_from(
        [
            "limit",
            "cursor",
            "search",
            "filter",
            "sort",
            "expand",
            "recursive",
            "num_parameters",
            "full",
            "author",
            "blobs",
            "gated",
            "direction",
        ]
    ),
    st.sampled_from(["1", "true", "x", "-1", "\0", "9" * 20, "min:6B", "min:", "WzEsIDJd", "[]", "ü", "%"]),
    max_size=4,
)
RANGES = st.sampled_from(["", "bytes=0-", "bytes=-0", "bytes=5-1", "bytes=99999999999999999999-", "bytes=0-0,2-3", "x"])


@given(
    route=st.sampled_from(router.routes),
    method=st.none() | st.sampled_from(["HEAD", "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
    words=st.lists(WORDS, min_size=6, max_size=6),
    usual=st.integers(0, 63),
    body=JSONS,
    query=QUERIES,
    range=RANGES,
)
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_no_request_makes_the_hub_fail(
    runner: Runner, route: Route, method: str | None, words: list[str], usual: int, body: object,
    query: dict[str, str], range: str,
) -> None:  # fmt: skip
    path = route.pattern
    for place, name in enumerate(name for name in VALUES if f"{{{name}}}" in route.pattern):
        value = VALUES[name] if usual >> place & 1 else words[place % len(words)]
        path = path.replace(f"{{{name}}}", value)
    sent = json.dumps(body).encode()
    if "/commit/" in route.pattern and isinstance(body, dict):
        head = json.dumps({"key": "header", "value": {"summary": "s"}}).encode()
        sent = head + b"\n" + json.dumps({"key": body.get("key", "file"), "value": body}).encode()
    told = runner.ask(method or route.method, f"{path}?{urlencode(query)}", sent, {"range": range})
    assert told[0] < 500 or told[0] == 501, (path, sent, told)
    assert named(route) in RULES


class Runner:
    """One event loop and one hub for all examples."""

    def __init__(self, hub: HubProcess) -> None:
        self.loop, self.token = asyncio.new_event_loop(), hub.admin
        self.context = hub_inside(hub.settings, hub.admin)
        self.hub, client = self.loop.run_until_complete(self.context.__aenter__())
        make = client.post("/api/repos/create", json={"name": REPO.partition("/")[2], "organization": "team"})
        self.loop.run_until_complete(make)
        self.loop.run_until_complete(send_whole(client, "x", content_of(1)))

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        asking = raw_answer(self.hub, method, path.encode(), body, token=self.token, headers=headers)
        return self.loop.run_until_complete(asking)

    def close(self) -> None:
        self.loop.run_until_complete(self.context.__aexit__(None, None, None))
        self.loop.close()


@pytest.fixture(scope="module")
def runner(resting: HubProcess) -> Iterator[Runner]:
    made = Runner(resting)
    yield made
    made.close()
