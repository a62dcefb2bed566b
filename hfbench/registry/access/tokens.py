"""Tokens: 256 random bits that are shown once and kept as a hash."""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

PREFIX = "hfb_"
SHOWN = len(PREFIX) + 6
"""Characters of a token that lists show, so that people can tell theirs apart."""
SCOPES = ("read", "write")


class NewToken(NamedTuple):
    """A token to hand out, and what the database keeps of it."""

    secret: str
    prefix: str
    digest: str


def new_token() -> NewToken:
    """A fresh token. Its hash needs no salt and no stretching: it has 256 bits nobody can guess."""
    secret = PREFIX + secrets.token_urlsafe(32)
    return NewToken(secret, secret[:SHOWN], digest_of(secret))


def digest_of(secret: str) -> str:
    """What a token is looked up by; the comparison is of hashes, and tells nothing of the token by its time."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
