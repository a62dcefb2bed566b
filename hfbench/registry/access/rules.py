"""Who may see, open and change what: the only place that decides, once for one repository and once as a clause.

Seeing is knowing that a repository is there, opening is reading its files, writing is all the rest.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, exists, false, or_, true

from hfbench.registry.access.caller import ADMIN, WRITE, Caller
from hfbench.registry.database.repos import Repo
from hfbench.registry.database.schema import gate_requests, repos

ACCEPTED = "accepted"


def may_see(caller: Caller, repo: Repo) -> bool:
    """Public ones for all, private ones for members."""
    return not repo.private or bool(caller.role_in(repo.namespace_id))


def may_open(caller: Caller, repo: Repo, *, granted: bool) -> bool:
    """What is seen is open, unless it is gated: then for its writers, and for whom access was granted."""
    if not may_see(caller, repo):
        return False
    return not repo.gated or granted or caller.role_in(repo.namespace_id) in (WRITE, ADMIN)


def may_write(caller: Caller, repo: Repo) -> bool:
    """Members who write, with a token that writes."""
    return caller.writes_in(repo.namespace_id)


def visible(caller: Caller) -> ColumnElement[bool]:
    """`may_see` as a clause over the table of repositories."""
    return or_(repos.c.private.is_(false()), _has_role(caller, ("read", WRITE, ADMIN)))


def openable(caller: Caller) -> ColumnElement[bool]:
    """`may_open` as a clause over the table of repositories."""
    granted = exists().where(
        gate_requests.c.repo_id == repos.c.id,
        gate_requests.c.account_id == caller.account,
        gate_requests.c.state == ACCEPTED,
    )
    return and_(visible(caller), or_(repos.c.gated == "", granted, _has_role(caller, (WRITE, ADMIN))))


def _has_role(caller: Caller, roles: tuple[str, ...]) -> ColumnElement[bool]:
    if caller.is_admin:
        return true() if caller.namespaces is None else repos.c.namespace_id.in_(sorted(caller.namespaces))
    held = [namespace for namespace in caller.roles if caller.role_in(namespace) in roles]
    return repos.c.namespace_id.in_(held) if held else false()
