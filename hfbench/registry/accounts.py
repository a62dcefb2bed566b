"""Users and tokens of a hub as plain records; light to import, for declarations and screens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class User:
    """An account with its roles by namespace."""

    name: str
    is_admin: bool
    disabled: bool
    roles: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token without its secret; `namespaces` is empty for all, times are seconds since the epoch or None."""

    id: int
    user: str
    name: str
    prefix: str
    scope: str
    namespaces: tuple[str, ...]
    created: float
    expires: float | None
    last_used: float | None
