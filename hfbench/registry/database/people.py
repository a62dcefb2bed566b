"""Accounts, namespaces, roles and tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.registry.access.caller import ADMIN, Caller
from hfbench.registry.access.tokens import NewToken
from hfbench.registry.database.rows import pairs
from hfbench.registry.database.schema import accounts, members, namespaces, tokens

NOTED_EVERY = 60.0
"""Seconds between two notes of a token's use."""


async def caller_of(connection: AsyncConnection, digest: str) -> Caller | None:
    """Who holds the token of this hash; None when it is unknown, expired or revoked, or the account is disabled."""
    query = (
        select(tokens, accounts.c.name.label("account"), accounts.c.is_admin)
        .join(accounts, accounts.c.id == tokens.c.account_id)
        .where(tokens.c.digest == digest, tokens.c.revoked.is_(None), accounts.c.disabled.is_(False))
    )
    row = (await connection.execute(query)).mappings().first()
    if row is None or (row["expires"] is not None and row["expires"] <= time.time()):
        return None
    return await _caller(connection, row)


async def _caller(connection: AsyncConnection, row: RowMapping) -> Caller:
    query = select(members.c.namespace_id, members.c.role).where(members.c.account_id == row["account_id"])
    roles = await pairs(connection, query)
    return Caller(
        account=row["account_id"],
        name=row["account"],
        token=row["id"],
        token_name=row["name"],
        scope=row["scope"],
        is_admin=row["is_admin"],
        roles=roles,
        namespaces=None if row["namespaces"] is None else frozenset(row["namespaces"]),
    )


async def caller_of_token(connection: AsyncConnection, token: int) -> Caller | None:
    """Who holds the token of this id, by the same rules: for permissions that were derived from it."""
    digest = (await connection.execute(select(tokens.c.digest).where(tokens.c.id == token))).scalar()
    return await caller_of(connection, digest) if digest else None


async def note_use(connection: AsyncConnection, token: int) -> None:
    """Remember that a token was used, to the minute."""
    now = time.time()
    stale = (tokens.c.last_used.is_(None)) | (tokens.c.last_used < now - NOTED_EVERY)
    await connection.execute(update(tokens).where(tokens.c.id == token, stale).values(last_used=now))


async def namespace_id(connection: AsyncConnection, name: str) -> int | None:
    """The id of the namespace of that name, in any case of its letters."""
    query = select(namespaces.c.id).where(namespaces.c.folded == name.casefold())
    return (await connection.execute(query)).scalar()


async def namespace_names(connection: AsyncConnection, ids: Sequence[int]) -> dict[int, str]:
    """Names by id."""
    query = select(namespaces.c.id, namespaces.c.name).where(namespaces.c.id.in_(ids))
    return await pairs(connection, query)


async def add_namespace(connection: AsyncConnection, name: str, kind: str) -> int:
    """Make a namespace; IntegrityError when the name is taken."""
    row = {"name": name, "folded": name.casefold(), "kind": kind, "created": time.time()}
    return int((await connection.execute(insert(namespaces).values(row).returning(namespaces.c.id))).scalar_one())


async def add_account(connection: AsyncConnection, name: str, *, fullname: str = "", is_admin: bool = False) -> int:
    """Make an account with a namespace of its name; IntegrityError when the name is taken."""
    namespace = await add_namespace(connection, name, "user")
    row = {
        "namespace_id": namespace,
        "name": name,
        "fullname": fullname or name,
        "is_admin": is_admin,
        "disabled": False,
        "created": time.time(),
    }
    account = int((await connection.execute(insert(accounts).values(row).returning(accounts.c.id))).scalar_one())
    await set_role(connection, account, namespace, ADMIN)
    return account


async def account_named(connection: AsyncConnection, name: str) -> RowMapping | None:
    """The account of that name."""
    return (await connection.execute(select(accounts).where(accounts.c.name == name))).mappings().first()


async def list_accounts(connection: AsyncConnection) -> list[RowMapping]:
    """All accounts by name, each with its roles as `team:write, ...` left to the caller to spell."""
    return list((await connection.execute(select(accounts).order_by(accounts.c.name))).mappings())


async def roles_of(connection: AsyncConnection, account: int) -> dict[str, str]:
    """Namespace name to role."""
    query = (
        select(namespaces.c.name, members.c.role)
        .join(members, members.c.namespace_id == namespaces.c.id)
        .where(members.c.account_id == account)
        .order_by(namespaces.c.name)
    )
    return await pairs(connection, query)


async def set_role(connection: AsyncConnection, account: int, namespace: int, role: str) -> None:
    """Give an account a role in a namespace; an empty role takes it away."""
    await connection.execute(
        delete(members).where(members.c.account_id == account, members.c.namespace_id == namespace)
    )
    if role:
        await connection.execute(insert(members).values(account_id=account, namespace_id=namespace, role=role))


async def set_disabled(connection: AsyncConnection, account: int, disabled: bool) -> None:
    """Let an account in no longer, or again; its tokens follow at once."""
    await connection.execute(update(accounts).where(accounts.c.id == account).values(disabled=disabled))


async def add_token(
    connection: AsyncConnection,
    account: int,
    name: str,
    token: NewToken,
    *,
    scope: str,
    namespaces: Sequence[int] | None = None,
    expires: float | None = None,
) -> int:
    """Keep a token's hash; its id."""
    row: dict[str, Any] = {
        "account_id": account,
        "name": name,
        "prefix": token.prefix,
        "digest": token.digest,
        "scope": scope,
        "namespaces": None if namespaces is None else list(namespaces),
        "created": time.time(),
        "expires": expires,
    }
    return int((await connection.execute(insert(tokens).values(row).returning(tokens.c.id))).scalar_one())


async def list_tokens(connection: AsyncConnection, account: int | None = None) -> list[RowMapping]:
    """Tokens that were not revoked, with the names of their accounts."""
    query = (
        select(tokens, accounts.c.name.label("account"))
        .join(accounts, accounts.c.id == tokens.c.account_id)
        .where(tokens.c.revoked.is_(None))
        .order_by(tokens.c.id)
    )
    if account is not None:
        query = query.where(tokens.c.account_id == account)
    return list((await connection.execute(query)).mappings())


async def revoke_token(connection: AsyncConnection, id: int) -> bool:
    """Let a token in no longer; False when there is none of that id that was let in."""
    query = update(tokens).where(tokens.c.id == id, tokens.c.revoked.is_(None)).values(revoked=time.time())
    return bool((await connection.execute(query.returning(tokens.c.id))).first())


async def count_accounts(connection: AsyncConnection) -> int:
    """How many accounts there are."""
    return int((await connection.execute(select(func.count()).select_from(accounts))).scalar_one())
