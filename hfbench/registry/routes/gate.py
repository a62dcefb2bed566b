"""Access to gated repositories: asked for, granted, refused, listed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from starlette.responses import JSONResponse, Response

from hfbench.registry import wire
from hfbench.registry.access.rules import ACCEPTED
from hfbench.registry.call import Call
from hfbench.registry.database.audit import note
from hfbench.registry.database.people import account_named
from hfbench.registry.database.repos import gate_state, set_gate_state
from hfbench.registry.database.schema import accounts, gate_requests
from hfbench.registry.errors import BadRequest, Refusal
from hfbench.registry.routing import router

PENDING, REJECTED = "pending", "rejected"
STATES = (PENDING, ACCEPTED, REJECTED)
REQUESTS = "/api/{kind}/{namespace}/{name}/user-access-request"


@router.post("/{namespace}/{name}/ask-access")
async def ask_access(call: Call) -> Response:
    """The caller wishes to open a gated model: granted at once where the gate is automatic."""
    async with call.hub.database.writing() as connection:
        caller = await call.somebody(connection)
        repo = await call.repo(connection)
        if not repo.gated:
            raise BadRequest(f"{repo.full_name} is not gated.")
        state = await gate_state(connection, repo.id, caller.account)
        if not state:
            state = ACCEPTED if repo.gated == "auto" else PENDING
            await set_gate_state(connection, repo.id, caller.account, state)
    return JSONResponse({"status": state})


@router.get(f"{REQUESTS}/{{state}}")
async def requests(call: Call) -> Response:
    """Who asked, by what became of it."""
    async with call.hub.database.reading() as connection:
        repo = await call.writable_repo(connection)
        if call.params["state"] not in STATES:
            raise BadRequest(f"The state is one of {', '.join(STATES)}.")
        query = (
            select(accounts.c.id, accounts.c.name, accounts.c.fullname, gate_requests.c.state, gate_requests.c.at)
            .join(gate_requests, gate_requests.c.account_id == accounts.c.id)
            .where(gate_requests.c.repo_id == repo.id, gate_requests.c.state == call.params["state"])
            .order_by(gate_requests.c.at)
        )
        rows = (await connection.execute(query)).all()
    return JSONResponse(
        [
            {
                "requestId": str(id),
                "user": {"user": name, "fullname": fullname},
                "status": state,
                "timestamp": wire.moment(at),
            }
            for id, name, fullname, state, at in rows
        ]
    )


@router.post(f"{REQUESTS}/grant")
async def grant(call: Call) -> Response:
    """Let an account in that need not have asked."""
    given = await call.json()
    return await _settle(call, given.get("user"), ACCEPTED)


@router.post(f"{REQUESTS}/handle")
async def handle(call: Call) -> Response:
    """Accept or reject a request, or make it pending again."""
    given = await call.json()
    return await _settle(call, given.get("user"), given.get("status"))


async def _settle(call: Call, name: Any, state: Any) -> Response:
    async with call.hub.database.writing() as connection:
        repo = await call.writable_repo(connection)
        account = await account_named(connection, name) if isinstance(name, str) else None
        if account is None:
            raise Refusal(404, "There is no such user.")
        if not repo.gated:
            raise BadRequest(f"{repo.full_name} is not gated.")
        if state not in STATES:
            raise BadRequest(f"The status is one of {', '.join(STATES)}.")
        caller = await call.caller(connection)
        await set_gate_state(connection, repo.id, account["id"], state)
        await note(connection, caller.name, "gate", f"{repo.kind} {repo.full_name}", {"user": name, "state": state})
    return JSONResponse({})
