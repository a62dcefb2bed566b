"""Who may call which route: the table that every route has to be in."""

from __future__ import annotations

import json
from typing import NamedTuple

from test_commits import file, lines

from hfbench.registry.routing import Route

BLIND, SEALED, OPEN, SOMEBODY, WRITER, ADMIN = "blind", "sealed", "open", "somebody", "writer", "admin"
"""Blind asks for no token, sealed for a signed one of its own, open takes nobody, but no token that ended."""
LFS = json.dumps({"operation": "upload", "objects": []}).encode()
OBJECT = json.dumps({"oid": "0" * 64, "size": 1}).encode()
USER = json.dumps({"user": "stranger", "status": "accepted"}).encode()


class Rule(NamedTuple):
    """Who may call a route, and a body that gets as far as asking."""

    who: str
    body: bytes = b""


RULES = {
    "GET /health": Rule(BLIND),
    "POST /api/validate-yaml": Rule(BLIND, b'{"content": ""}'),
    "GET /api/{kind}/{name}": Rule(BLIND),
    "GET /{namespace}/{name}/info/refs": Rule(BLIND),
    "GET /{kind}/{namespace}/{name}/info/refs": Rule(BLIND),
    "PUT /_lfs/whole/{sealed}": Rule(SEALED),
    "PUT /_lfs/part/{sealed}": Rule(SEALED),
    "POST /_lfs/complete/{sealed}": Rule(SEALED, b"{}"),
    "GET /_cas/v1/chunks/{prefix}/{hash}": Rule(SEALED),
    "POST /_cas/v1/xorbs/{prefix}/{hash}": Rule(SEALED),
    "POST /_cas/v1/shards": Rule(SEALED),
    "GET /_cas/{scope}/v1/chunks/{prefix}/{hash}": Rule(SEALED),
    "POST /_cas/{scope}/v1/xorbs/{prefix}/{hash}": Rule(SEALED),
    "POST /_cas/{scope}/v1/shards": Rule(SEALED),
    "GET /api/models": Rule(OPEN),
    "GET /api/datasets": Rule(OPEN),
    "GET /api/{kind}/{namespace}/{name}": Rule(OPEN),
    "GET /api/{kind}/{namespace}/{name}/revision/{revision}": Rule(OPEN),
    "GET /api/{kind}/{namespace}/{name}/auth-check": Rule(OPEN),
    "GET /api/{kind}/{namespace}/{name}/refs": Rule(OPEN),
    "GET /api/{kind}/{namespace}/{name}/commits/{revision}": Rule(OPEN),
    "GET /api/{kind}/{namespace}/{name}/tree/{revision}/{path...}": Rule(OPEN),
    "GET /api/{kind}/{namespace}/{name}/safetensors-metadata/{path...}": Rule(OPEN),
    "POST /api/{kind}/{namespace}/{name}/paths-info/{revision}": Rule(OPEN),
    "GET /{namespace}/{name}/resolve/{revision}/{path...}": Rule(OPEN),
    "GET /{kind}/{namespace}/{name}/resolve/{revision}/{path...}": Rule(OPEN),
    "GET /api/whoami-v2": Rule(SOMEBODY),
    "GET /api/settings/repositories": Rule(SOMEBODY),
    "GET /api/organizations/{organization}/settings/repositories": Rule(SOMEBODY),
    "POST /{namespace}/{name}/ask-access": Rule(SOMEBODY, b"{}"),
    "GET /metrics": Rule(ADMIN),
    "POST /api/repos/create": Rule(WRITER, b'{"name": "made", "organization": "team"}'),
    "DELETE /api/repos/delete": Rule(WRITER, b'{"name": "doomed", "organization": "team"}'),
    "POST /api/repos/move": Rule(WRITER, b'{"fromRepo": "team/moving", "toRepo": "team/moved"}'),
    "PUT /api/{kind}/{namespace}/{name}/settings": Rule(WRITER, b'{"gated": false}'),
    "GET /api/{kind}/{namespace}/{name}/auth-check/write": Rule(WRITER),
    "GET /api/{kind}/{namespace}/{name}/xet-write-token/{revision}": Rule(WRITER),
    "POST /api/{kind}/{namespace}/{name}/preupload/{revision}": Rule(WRITER, b'{"files": []}'),
    "POST /api/{kind}/{namespace}/{name}/commit/{revision}": Rule(WRITER, lines(file("x"))),
    "POST /api/{kind}/{namespace}/{name}/branch/{branch}": Rule(WRITER, b"{}"),
    "DELETE /api/{kind}/{namespace}/{name}/branch/{branch}": Rule(WRITER),
    "POST /api/{kind}/{namespace}/{name}/tag/{revision}": Rule(WRITER, b'{"tag": "t"}'),
    "DELETE /api/{kind}/{namespace}/{name}/tag/{tag}": Rule(WRITER),
    "POST /{namespace}/{git}/info/lfs/objects/batch": Rule(WRITER, LFS),
    "POST /{kind}/{namespace}/{git}/info/lfs/objects/batch": Rule(WRITER, LFS),
    "POST /{namespace}/{git}/info/lfs/objects/verify": Rule(WRITER, OBJECT),
    "POST /{kind}/{namespace}/{git}/info/lfs/objects/verify": Rule(WRITER, OBJECT),
    "GET /api/{kind}/{namespace}/{name}/user-access-request/{state}": Rule(WRITER),
    "POST /api/{kind}/{namespace}/{name}/user-access-request/grant": Rule(WRITER, USER),
    "POST /api/{kind}/{namespace}/{name}/user-access-request/handle": Rule(WRITER, USER),
}
VALUES = {"kind": "models", "namespace": "team", "name": "deeds", "git": "deeds.git", "revision": "main"}
VALUES |= {"branch": "b", "tag": "t", "state": "pending", "path...": "x", "organization": "team"}
VALUES |= {"sealed": "AAAA", "prefix": "default", "hash": "0" * 64}


def named(route: Route) -> str:
    return f"{route.method} {route.pattern}"
