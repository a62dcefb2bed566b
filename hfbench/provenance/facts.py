"""What is known of where a model comes from, as frozen dataclasses without libraries."""

from __future__ import annotations

from dataclasses import dataclass

SIGNATURE = "model.sig"
"""The name that OpenSSF model signing gives a signature inside the model's folder."""


@dataclass(frozen=True, kw_only=True)
class Signer:
    """Who made a signature. `fingerprint` is the SHA-256 of the public key as PEM: its name in signatures."""

    how: str
    """`key` or `certificate`."""
    fingerprint: str
    subject: str = ""
    """Subject of the certificate, empty for a bare key."""
    issuer: str = ""
    valid: str = ""
    """From and until when the certificate holds: `2026-01-01 to 2027-01-01`."""

    def __str__(self) -> str:
        """`key sha256:ab12...`, or the subject and then the key."""
        key = f"key sha256:{self.fingerprint}"
        return f"{self.subject}, {key}" if self.subject else key


@dataclass(frozen=True, kw_only=True)
class Covered:
    """How the files of a model compare with those that were signed, by their names inside the folder."""

    same: tuple[str, ...]
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Signed, and not there."""
    extra: tuple[str, ...] = ()
    """There, and not signed."""
    left_out: tuple[str, ...] = ()
    """There, and left out by the signature itself: nobody would notice a change."""

    @property
    def whole(self) -> bool:
        """True when what was signed is what is there."""
        return not (self.changed or self.missing or self.extra)


@dataclass(frozen=True, kw_only=True)
class Licence:
    """The licence a model tells of. `id` is like SPDX: `Apache-2.0`, `LicenseRef-gemma`; empty when none is told."""

    id: str = ""
    told: str = ""
    """As it is written in the source."""
    source: str = ""
    """The file that tells it."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What the gate found and let pass, for a manifest: who signed, and the licence."""

    signed_by: str = ""
    """Empty when no signature was asked for."""
    licence: str = ""
    licence_source: str = ""
    signature: str = ""
    """The file of the signature."""
