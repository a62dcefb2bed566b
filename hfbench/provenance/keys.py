"""Keys and certificates read from files, with a sentence for each that cannot be used. For workers: it loads
`cryptography`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.errors import UsageError
from hfbench.provenance.facts import Signer
from hfbench.provenance.plain import read_plain

CURVES = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
"""What OpenSSF model signing takes."""
MAKE = "make one with `openssl ecparam -name prime256v1 -genkey -noout -out key.pem`"
MAKE_PUBLIC = "write it with `openssl ec -in key.pem -pubout -out key.pub`"
MOST = 1 << 20


class KeyUnusable(UsageError):
    """A file that was given as a key or a certificate and cannot be used as one."""


@dataclass(frozen=True, kw_only=True)
class PrivateKey:
    """A private key without encryption, held in memory alone."""

    pem: bytes
    fingerprint: str


def read_private(path: Path, password_from: str = "") -> PrivateKey:
    """A private key; `password_from` names the environment variable with its password. KeyUnusable says why not."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    raw = _pem(path, "private key", MAKE)
    if b"PRIVATE KEY-----" not in raw:
        what = (
            "a public key" if b"PUBLIC KEY-----" in raw else "a certificate" if b"CERTIFICATE-----" in raw else "no key"
        )
        raise KeyUnusable(f"is {what}, not a private key", where=path, remedy="give the private one")
    password = _password(password_from)
    try:
        key = serialization.load_pem_private_key(raw, password)
    except TypeError:
        if password is not None:  # it is not encrypted, and needs none
            key = _unencrypted(raw, path)
        else:
            remedy = "put its password into an environment variable and name that with --password-from"
            raise KeyUnusable("the key is encrypted", where=path, remedy=remedy) from None
    except (ValueError, UnsupportedAlgorithm):
        if password is not None or b"ENCRYPTED" in raw:
            remedy = (
                "see that the password is right" if password is not None else "name its password with --password-from"
            )
            raise KeyUnusable("the key cannot be decrypted", where=path, remedy=remedy) from None
        raise KeyUnusable("is no private key that can be read", where=path, remedy=MAKE) from None
    _require_curve(key, path)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return PrivateKey(pem=pem, fingerprint=fingerprint(key.public_key()))


def read_public(path: Path) -> Signer:
    """The public key of a file, as whom it stands for; KeyUnusable says why not."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    raw = _pem(path, "public key", MAKE_PUBLIC)
    if b"PRIVATE KEY-----" in raw:
        raise KeyUnusable("is a private key, not a public one", where=path, remedy=MAKE_PUBLIC)
    if b"CERTIFICATE-----" in raw:
        raise KeyUnusable("is a certificate, not a public key", where=path, remedy="give it with --certificate")
    try:
        key = serialization.load_pem_public_key(raw)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyUnusable("is no public key that can be read", where=path, remedy=MAKE_PUBLIC) from None
    _require_curve(key, path)
    return Signer(how="key", fingerprint=fingerprint(key))


def require_certificates(paths: Sequence[Path]) -> None:
    """KeyUnusable unless each file holds certificates."""
    from cryptography import x509

    for path in paths:
        raw = _pem(path, "certificate", "give the certificate of the authority, or its chain, as PEM")
        try:
            x509.load_pem_x509_certificates(raw)
        except ValueError:
            remedy = "give a file with -----BEGIN CERTIFICATE-----"
            raise KeyUnusable("holds no certificate that can be read", where=path, remedy=remedy) from None


def certificate_signer(der: bytes) -> Signer:
    """Whom a signing certificate names; ValueError when it cannot be read."""
    from cryptography import x509

    found = x509.load_der_x509_certificate(der)
    begin, end = found.not_valid_before_utc, found.not_valid_after_utc
    return Signer(
        how="certificate",
        fingerprint=fingerprint(found.public_key()),
        subject=found.subject.rfc4514_string(),
        issuer=found.issuer.rfc4514_string(),
        valid=f"{begin:%Y-%m-%d} to {end:%Y-%m-%d}",
    )


def fingerprint(key: Any) -> str:
    """SHA-256 of a public key as PEM, in hex: the name by which a signature knows its key."""
    from cryptography.hazmat.primitives import serialization

    pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(pem).hexdigest()


def _require_curve(key: Any, path: Path) -> None:
    curve = getattr(getattr(key, "curve", None), "name", "")
    if curve not in CURVES:
        name = type(key).__name__.partition("P")[0] or "another"  # RSAPrivateKey, Ed25519PublicKey
        kind = f"of the curve {curve}" if curve else f"of the kind {name}"
        known = ", ".join(CURVES.values())
        raise KeyUnusable(
            f"is a key {kind}, and models are signed with elliptic keys of {known}", where=path, remedy=MAKE
        )


def _unencrypted(raw: bytes, path: Path) -> Any:
    from cryptography.hazmat.primitives import serialization

    try:
        return serialization.load_pem_private_key(raw, None)
    except (ValueError, TypeError):
        raise KeyUnusable("is no private key that can be read", where=path, remedy=MAKE) from None


def _password(name: str) -> bytes | None:
    if not name:
        return None
    told = os.environ.get(name)
    if told is None:
        raise UsageError(f"the environment variable {name!r} is not set", remedy=f"set {name} to the key's password")
    return told.encode()


def _pem(path: Path, what: str, remedy: str) -> bytes:
    """The bytes of a file with something in PEM."""
    try:
        raw = read_plain(path, MOST)
    except OSError as error:
        raise KeyUnusable(f"the {what} cannot be read: {error.strerror}", where=path) from error
    if b"-----BEGIN " not in raw:
        raise KeyUnusable(f"is no {what} in PEM", where=path, remedy=remedy)
    return raw
