"""Commits made."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from hfbench.registry.call import Call
from hfbench.registry.errors import NotImplementedHere
from hfbench.registry.facts import refresh
from hfbench.registry.revisions.commit import commit, read_draught
from hfbench.registry.revisions.intake import Intake
from hfbench.registry.revisions.payload import steps
from hfbench.registry.routes.repos import PREFIXES
from hfbench.registry.routing import router
from hfbench.registry.validation import judge


@router.post("/api/{kind}/{namespace}/{name}/commit/{revision}")
async def make_commit(call: Call) -> Response:
    """Read the changes, judge them, and move the branch."""
    if call.flag("create_pr"):
        raise NotImplementedHere("pull requests: commit to a branch instead")
    hub = call.hub
    async with hub.database.reading() as connection:
        repo = await call.writable_repo(connection)
        await call.revision(connection, repo)
        caller = await call.caller(connection)
    draught = await read_draught(steps(call.stream()), Intake(hub.database, hub.layout), caller.name)
    warnings = await judge(hub, repo, call.params["revision"], draught, caller)
    made, is_new = await commit(hub.database, hub.trees, hub.settings, repo, call.params["revision"], draught, caller)
    if is_new:
        await refresh(hub, repo)
    url = call.url(f"{PREFIXES[repo.kind]}{repo.full_name}/commit/{made.id}")
    return JSONResponse(
        {"success": True, "commitOid": made.id, "commitUrl": url, "hookOutput": ""},
        headers={"X-HF-Warning": warnings} if warnings else None,
    )
