"""Judges what a commit would add: main of a strict repository refuses it with all problems, else it is a warning."""

from __future__ import annotations

from hfbench.registry.access.caller import Caller
from hfbench.registry.database.history import MAIN
from hfbench.registry.database.repos import Repo
from hfbench.registry.errors import BadRequest, header_text
from hfbench.registry.hub import Hub
from hfbench.registry.problems import problems
from hfbench.registry.revisions.commit import Draught

TOPIC = "validation"
NAMED = 20


async def judge(hub: Hub, repo: Repo, branch: str, draught: Draught, caller: Caller) -> str:
    """The warning to send with the answer, empty when nothing is wrong; BadRequest on main of a strict repository.

    Clients that send a large model in several commits send it to another branch first, and then at once to main.
    """
    found = await problems(hub, repo, branch, draught, caller)
    if not found:
        return ""
    more = [f"and {len(found) - NAMED} more"] if len(found) > NAMED else []
    if repo.strict and branch == MAIN:
        raise BadRequest(
            f"{repo.full_name} is strict and refuses this commit to {MAIN}: {'; '.join([*found[:NAMED], *more])}."
        )
    return header_text(f"{TOPIC}; {'; '.join([*found[:NAMED], *more])}")
