"""Who asks: the account behind a token, its roles, and what the token leaves of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

READ, WRITE, ADMIN = "read", "write", "admin"
ROLES = (READ, WRITE, ADMIN)


@dataclass(frozen=True, slots=True)
class Caller:
    """One request's identity. Anonymous has no account; tokens of some namespaces see nothing private elsewhere."""

    account: int = 0
    name: str = ""
    token: int = 0
    token_name: str = ""
    scope: str = READ
    is_admin: bool = False
    roles: Mapping[int, str] = field(default_factory=dict)
    """Namespace id to role."""
    namespaces: frozenset[int] | None = None
    """The namespaces the token is for; None is all."""

    @property
    def anonymous(self) -> bool:
        """Whether nobody is known."""
        return not self.account

    def role_in(self, namespace: int) -> str:
        """The role the caller has there with this token, or an empty string."""
        if self.namespaces is not None and namespace not in self.namespaces:
            return ""
        return ADMIN if self.is_admin else self.roles.get(namespace, "")

    def writes_in(self, namespace: int) -> bool:
        """Whether this token may change things there."""
        return self.scope == WRITE and self.role_in(namespace) in (WRITE, ADMIN)


ANONYMOUS = Caller()
