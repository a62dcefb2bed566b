"""A signature file as data: what it claims to cover, and which key it names. Nothing is verified here."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError
from hfbench.provenance.plain import read_plain

MOST = 64 << 20
"""Bytes of a signature; one of 100,000 files takes 20 MiB."""
METHODS = ("files", "shards")
SIGN_AGAIN = "fetch it again, or sign the model anew with `hfbench sign`"


class SignatureDamaged(HfbenchError):
    """A signature file that cannot be read as one."""


class Unsigned(HfbenchError):
    """The model has no signature."""


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The claims of a signature, true only after it was verified."""

    hint: str
    """Fingerprint of the key it was made with; empty for a certificate, and in old signatures."""
    certificate: bytes | None
    """The signing certificate in DER."""
    files: frozenset[str]
    method: str
    hash_type: str
    shard_size: int
    ignored: tuple[str, ...]


def read_bundle(path: Path) -> Bundle:
    """The claims of a signature file; Unsigned when it is not there, SignatureDamaged when it is none."""
    try:
        raw = read_plain(path, MOST + 1)
    except FileNotFoundError:
        remedy = "sign it with `hfbench sign MODEL --key KEY`, or give the file with --signature"
        raise Unsigned("the model is not signed: there is no such file", where=path, remedy=remedy) from None
    except OSError as error:
        raise SignatureDamaged(f"cannot be read: {error.strerror}", where=path, remedy=SIGN_AGAIN) from None
    if len(raw) > MOST:
        raise SignatureDamaged("is too large for a signature", where=path, remedy=SIGN_AGAIN)
    data = _object(raw, path, "is not JSON")
    material, envelope = data.get("verificationMaterial"), data.get("dsseEnvelope")
    if not isinstance(material, Mapping) or not isinstance(envelope, Mapping):
        raise SignatureDamaged("is JSON, but no signature of a model", where=path, remedy=SIGN_AGAIN)
    if "certificate" in material:
        found = "was made with Sigstore without a key, which is verified over the network"
        raise HfbenchError(
            found, where=path, remedy="verify it with `model_signing verify sigstore`, or sign with a key"
        )
    try:
        payload = base64.b64decode(envelope["payload"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise SignatureDamaged("has no readable list of files", where=path, remedy=SIGN_AGAIN) from None
    statement = _object(payload, path, "its list of files is not JSON")
    return _bundle(material, statement, path)


def _bundle(material: Mapping[str, Any], statement: Mapping[str, Any], path: Path) -> Bundle:
    try:
        predicate = statement.get("predicate") or {}
        how = predicate.get("serialization") or {"method": "files", "hash_type": "sha256"}
        named = predicate["resources"] if "resources" in predicate else statement["subject"]
        method = str(how["method"])
        names = [str(each["name"]) for each in named]
        chain = (material.get("x509CertificateChain") or {}).get("certificates") or []
        return Bundle(
            hint=str((material.get("publicKey") or {}).get("hint") or ""),
            certificate=base64.b64decode(chain[0]["rawBytes"], validate=True) if chain else None,
            files=frozenset(name.rsplit(":", 2)[0] if method == "shards" else name for name in names),
            method=method if method in METHODS else "",
            hash_type=str(how["hash_type"]),
            shard_size=int(how.get("shard_size") or 0),
            ignored=tuple(map(str, how.get("ignore_paths") or ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        found = "its list of files is not laid out as one"
        raise SignatureDamaged(found, where=path, remedy=SIGN_AGAIN) from None


def _object(raw: bytes, path: Path, otherwise: str) -> dict[str, Any]:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise SignatureDamaged(otherwise, where=path, remedy=SIGN_AGAIN)
    return data
