"""Permissions that travel in a URL or a short token: signed, bound to one purpose, and expiring."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

MAC_BYTES = 32


class Signer:
    """Seals claims with the hub's key; nobody else can make or change them."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, purpose: str, claims: dict[str, Any], *, seconds: float) -> str:
        """Claims as one word for a URL, good for so many seconds."""
        body = json.dumps({**claims, "until": time.time() + seconds}, separators=(",", ":")).encode()
        return _text(self._mac(purpose, body) + body)

    def open(self, purpose: str, sealed: str) -> dict[str, Any] | None:
        """The claims, or None when the seal is not ours, is for something else, or has expired."""
        try:
            raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        except ValueError:
            return None
        mac, body = raw[:MAC_BYTES], raw[MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(purpose, body)):
            return None
        claims: dict[str, Any] = json.loads(body)
        return claims if claims["until"] > time.time() else None

    def _mac(self, purpose: str, body: bytes) -> bytes:
        return hmac.new(self._key, purpose.encode() + b"\0" + body, hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
