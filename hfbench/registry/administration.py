"""What administrators do to accounts and tokens, with errors in their words: what front ends call."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.errors import UsageError
from hfbench.registry.access.caller import ROLES
from hfbench.registry.access.tokens import SCOPES, new_token
from hfbench.registry.accounts import Token, User
from hfbench.registry.database import people
from hfbench.registry.database.audit import note
from hfbench.registry.errors import Refusal
from hfbench.registry.founding import with_database
from hfbench.registry.names import check_name
from hfbench.registry.plain import plain_text
from hfbench.registry.settings import Settings

LARGEST_ID = 1 << 31
BY = "administration"
"""What the audit calls whoever works on the hub's own machine."""


def add_user(settings: Settings, name: str, *, fullname: str = "", is_admin: bool = False) -> None:
    """Make an account with a namespace of its name; UsageError when the name is taken or none."""
    _checked(name)
    _require_text(fullname, "--fullname")

    async def work(connection: AsyncConnection) -> None:
        await people.add_account(connection, name, fullname=fullname, is_admin=is_admin)
        await note(connection, BY, "user.add", name, {"is_admin": is_admin})

    try:
        with_database(settings, work)
    except IntegrityError as error:
        raise UsageError(f"the name {name!r} is taken", remedy="choose another") from error


def list_users(settings: Settings) -> list[User]:
    """All accounts by name."""

    async def work(connection: AsyncConnection) -> list[User]:
        return [
            User(
                name=row["name"],
                is_admin=row["is_admin"],
                disabled=row["disabled"],
                roles=await people.roles_of(connection, row["id"]),
            )
            for row in await people.list_accounts(connection)
        ]

    return with_database(settings, work)


def grant_role(settings: Settings, user: str, namespace: str, role: str) -> None:
    """Give a user a role in a namespace, which is made when there is none; an empty role takes it away."""
    if role and role not in ROLES:
        raise UsageError(f"unknown role {role!r}", remedy=f"one of {', '.join(ROLES)}")

    async def work(connection: AsyncConnection) -> None:
        account = await _account(connection, user)
        found = await people.namespace_id(connection, namespace)
        if found is None:
            if not role:
                raise UsageError(f"there is no namespace {namespace!r}")
            found = await people.add_namespace(connection, _checked(namespace), "org")
        await people.set_role(connection, account, found, role)
        await note(connection, BY, "user.role", user, {"namespace": namespace, "role": role})

    with_database(settings, work)


def set_disabled(settings: Settings, user: str, disabled: bool) -> None:
    """Let a user in no longer, or again."""

    async def work(connection: AsyncConnection) -> None:
        await people.set_disabled(connection, await _account(connection, user), disabled)
        await note(connection, BY, "user.disable" if disabled else "user.enable", user)

    with_database(settings, work)


def create_token(
    settings: Settings,
    user: str,
    *,
    name: str,
    scope: str = "write",
    namespaces: Sequence[str] = (),
    seconds: float | None = None,
) -> str:
    """A new token of a user, told only now; `seconds` until it expires, None for never."""
    _require_text(name, "--name")
    if scope not in SCOPES:
        raise UsageError(f"unknown scope {scope!r}", remedy=f"one of {', '.join(SCOPES)}")
    token = new_token()

    async def work(connection: AsyncConnection) -> None:
        account = await _account(connection, user)
        ids = [await _namespace(connection, each) for each in namespaces]
        expires = None if seconds is None else time.time() + seconds
        await people.add_token(connection, account, name, token, scope=scope, namespaces=ids or None, expires=expires)
        await note(connection, BY, "token.create", user, {"name": name, "prefix": token.prefix, "scope": scope})

    with_database(settings, work)
    return token.secret


def list_tokens(settings: Settings, user: str = "") -> list[Token]:
    """Tokens that were not revoked, of a user or of all."""

    async def work(connection: AsyncConnection) -> list[Token]:
        rows = await people.list_tokens(connection, await _account(connection, user) if user else None)
        ids = sorted({id for row in rows for id in row["namespaces"] or ()})
        names = await people.namespace_names(connection, ids)
        return [
            Token(
                id=row["id"],
                user=row["account"],
                name=row["name"],
                prefix=row["prefix"],
                scope=row["scope"],
                namespaces=tuple(names.get(id, "?") for id in row["namespaces"] or ()),
                created=row["created"],
                expires=row["expires"],
                last_used=row["last_used"],
            )
            for row in rows
        ]

    return with_database(settings, work)


def revoke_token(settings: Settings, id: int) -> None:
    """Let a token in no longer: requests that begin from now on are refused."""

    async def work(connection: AsyncConnection) -> None:
        if not 0 < id < LARGEST_ID or not await people.revoke_token(connection, id):
            raise UsageError(f"there is no token {id}", remedy="hfbench registry token list tells them")
        await note(connection, BY, "token.revoke", str(id))

    with_database(settings, work)


async def _account(connection: AsyncConnection, name: str) -> int:
    row = await people.account_named(connection, name)
    if row is None:
        raise UsageError(f"there is no user {name!r}", remedy="hfbench registry user list tells them")
    return int(row["id"])


async def _namespace(connection: AsyncConnection, name: str) -> int:
    found = await people.namespace_id(connection, name)
    if found is None:
        raise UsageError(f"there is no namespace {name!r}")
    return found


def _checked(name: str) -> str:
    try:
        return check_name(name, "namespace")
    except Refusal as error:
        raise UsageError(error.found) from error


def _require_text(text: str, where: str) -> None:
    """UsageError for what no database keeps."""
    if plain_text(text) != text:
        raise UsageError("is no text: it is not UTF-8, or holds NUL", where=where)
