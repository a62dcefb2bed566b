"""Who a token belongs to."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from hfbench.registry import wire
from hfbench.registry.call import Call
from hfbench.registry.database.people import account_named, roles_of
from hfbench.registry.errors import BadToken
from hfbench.registry.routing import router


@router.get("/api/whoami-v2")
async def whoami(call: Call) -> Response:
    """The caller's account, its organisations and the scope of its token."""
    async with call.hub.database.reading() as connection:
        caller = await call.caller(connection)
        if caller.anonymous:
            raise BadToken
        account = await account_named(connection, caller.name)
        roles = await roles_of(connection, caller.account)
    orgs = {name: role for name, role in roles.items() if name != caller.name}
    return JSONResponse(wire.whoami(caller, account["fullname"] if account else caller.name, orgs))
