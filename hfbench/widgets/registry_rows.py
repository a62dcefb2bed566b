"""A hub as rows of tables: repositories, tokens, users; no widget and no reading here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hfbench.units import show_ago, show_bytes, show_elapsed
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

if TYPE_CHECKING:
    from hfbench.actions.registry_show import RegistryView
    from hfbench.registry.accounts import Token, User
    from hfbench.registry.upkeep.facts import RepoUse

SOON = 7 * 86400.0
"""Seconds before its end from which a token is marked."""

REPO_COLUMNS = (
    Column("repo", "Repository", flexible=True, min=18, max=60, middle=True),
    Column("kind", "Kind", priority=2),
    Column("size", "Size", align="right", min=8),
    Column("commits", "Revisions", align="right"),
    Column("downloads", "Downloads", align="right", priority=1),
    Column("seen", "Seen by", min=8),
)
TOKEN_COLUMNS = (
    Column("id", "No", align="right"),
    Column("prefix", "Prefix", min=10),
    Column("user", "User", flexible=True, min=8, max=30),
    Column("scope", "Scope"),
    Column("expires", "Expires", min=9),
    Column("used", "Used", align="right", priority=1),
    Column("namespaces", "Lets into", flexible=True, min=10, max=40, priority=2),
    Column("name", "Name", flexible=True, min=6, max=30, priority=3),
)
USER_COLUMNS = (
    Column("user", "User", flexible=True, min=12, max=40),
    Column("state", "State", min=10),
    Column("tokens", "Tokens", align="right", priority=1),
    Column("roles", "Roles", flexible=True, min=20, max=200),
)


def repo_records(view: RegistryView) -> list[Record]:
    """Repositories, largest first."""
    return [_repo(each) for each in (view.use.largest if view.use else ())]


def token_records(view: RegistryView, now: float, glyphs: Glyphs) -> list[Record]:
    """Tokens that were not revoked."""
    return [_token(each, now, glyphs) for each in view.tokens]


def user_records(view: RegistryView, glyphs: Glyphs) -> list[Record]:
    """Users by name."""
    counts: dict[str, int] = {}
    for each in view.tokens:
        counts[each.user] = counts.get(each.user, 0) + 1
    return [_user(each, counts.get(each.name, 0), glyphs) for each in view.users]


def _repo(each: RepoUse) -> Record:
    cells = {
        "repo": each.name,
        "kind": each.kind,
        "size": show_bytes(each.bytes),
        "commits": f"{each.commits:,}",
        "downloads": f"{each.downloads:,}",
        "seen": "members" if each.private else "all",
    }
    order = {"size": each.bytes, "commits": each.commits, "downloads": each.downloads}
    return Record(f"{each.kind} {each.name}", cells, {"kind": "muted", "seen": "muted"}, order)


def _token(each: Token, now: float, glyphs: Glyphs) -> Record:
    told, state = _expiry(each.expires, now)
    cells = {
        "id": str(each.id),
        "prefix": each.prefix,
        "user": each.user,
        "scope": each.scope,
        "expires": f"{glyphs.sign(state)} {told}".lstrip(),
        "used": show_ago(now - each.last_used) if each.last_used is not None else "never",
        "namespaces": ", ".join(each.namespaces) or "all theirs",
        "name": each.name,
    }
    states: dict[str, State] = {"expires": state, "namespaces": "muted", "used": "muted"}
    order = {"id": each.id, "expires": each.expires, "used": each.last_used}
    return Record(str(each.id), cells, states, order)


def _expiry(expires: float | None, now: float) -> tuple[str, State]:
    if expires is None:
        return "never", "muted"
    left = expires - now
    if left <= 0:
        return f"{show_ago(-left)}", "error"
    told = f"in {left / 86400:.0f} d" if left >= 2 * 86400 else f"in {show_elapsed(left)}"
    return told, "warn" if left < SOON else ""


def _user(each: User, tokens: int, glyphs: Glyphs) -> Record:
    state: State = "error" if each.disabled else "ok"
    word = "disabled" if each.disabled else "admin" if each.is_admin else ""
    roles = [f"{name}:{role}" for name, role in sorted(each.roles.items()) if name != each.name]
    cells = {
        "user": each.name,
        "state": f"{glyphs.sign(state)} {word}".rstrip(),
        "tokens": f"{tokens:,}",
        "roles": "everything, in every namespace" if each.is_admin else ", ".join(roles) or "its own namespace",
    }
    return Record(each.name, cells, {"state": state}, {"tokens": tokens})
