"""Verifies a model's signature offline: the signature first, then every file."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.errors import HfbenchError, UsageError
from hfbench.provenance.bundle import SIGN_AGAIN, Bundle, SignatureDamaged, read_bundle
from hfbench.provenance.facts import Covered, Signer
from hfbench.provenance.folder import NEVER, files_of, hashing_of, name_inside, total_bytes
from hfbench.provenance.keys import certificate_signer, read_public, require_certificates
from hfbench.provenance.progress import telling_reads

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

MISMATCH = "Signature mismatch"
"""How the library begins to say that the signature is right and the files are not."""


class NotTrusted(HfbenchError):
    """A signature that none of the given keys and certificates made."""


@dataclass(frozen=True, kw_only=True)
class Verified:
    """Who signed a model, and how its files compare with those that were signed."""

    signer: Signer
    files: Covered


def verify(
    folder: Path,
    signature: Path,
    run: Run,
    *,
    keys: Sequence[Path] = (),
    certificates: Sequence[Path] = (),
) -> Verified:
    """Who of these signed the folder, and what differs. `certificates` are the chain up to a root that is trusted.

    Unsigned, SignatureDamaged or NotTrusted say why nothing can be told; UsageError for a key that cannot be used.
    """
    if not keys and not certificates:
        remedy = "give --key or --certificate, or [signatures] keys in the configuration"
        raise UsageError("there is no key to verify with", remedy=remedy)
    known = {path: read_public(path) for path in keys}
    require_certificates(certificates)
    bundle = read_bundle(signature)
    trusted = _trusted(bundle, known, signature, certificates)
    total = total_bytes(files_of(folder))
    refused = ""
    for path in trusted:
        try:
            with telling_reads(run, "verify", total):
                compared = _compared(folder, signature, bundle, path, certificates)
        except _Refused as error:
            refused = str(error)
            continue
        signer = known[path] if path is not None else _certificate(bundle, signature)
        return Verified(signer=signer, files=_with_left_out(folder, signature, bundle, compared))
    who = "those certificates" if bundle.certificate is not None else "that key"
    remedy = "give the key or the chain of whoever signed, if you trust them; else fetch the model again"
    raise NotTrusted(f"the signature is not one of {who}: {refused}", where=signature, remedy=remedy)


class _Refused(Exception):
    """The library does not take the signature for one of the key."""


def _trusted(
    bundle: Bundle, known: dict[Path, Signer], signature: Path, certificates: Sequence[Path]
) -> list[Path | None]:
    """What may have made the signature: keys, or None for the chain of certificates. NotTrusted when nothing may."""
    if bundle.certificate is not None:
        if certificates:
            return [None]
        signer = _certificate(bundle, signature)
        found = f"it was signed with a certificate of {signer.subject or 'nobody by name'}, and keys were given"
        raise NotTrusted(found, where=signature, remedy="give the chain of its authority with --certificate")
    if not known:
        found = (
            f"it was signed with the key sha256:{bundle.hint or 'that it does not name'}, and certificates were given"
        )
        raise NotTrusted(found, where=signature, remedy="give the public key with --key")
    fitting = [path for path, signer in known.items() if not bundle.hint or signer.fingerprint == bundle.hint]
    if not fitting:
        given = ", ".join(f"sha256:{signer.fingerprint[:16]}" for signer in known.values())
        found = f"it was signed with another key, sha256:{bundle.hint[:16]}, than those given: {given}"
        raise NotTrusted(found, where=signature, remedy="give the public key of whoever signed, if you trust them")
    return list(fitting)


def _compared(folder: Path, signature: Path, bundle: Bundle, key: Path | None, certificates: Sequence[Path]) -> Covered:
    """How the files compare, when the signature is right; _Refused when it is not."""
    from cryptography.exceptions import InvalidSignature

    config = _recording()
    own = [each for each in (*NEVER, *name_inside(folder, signature)) if not _signed(bundle, each)]
    config.set_hashing_config(hashing_of(folder, own, bundle))
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # the library prints its warnings
            if key is not None:
                config.use_elliptic_key_verifier(public_key=key)
            else:
                config.use_certificate_verifier(certificate_chain=list(certificates))
            config.verify(folder, signature)
    except InvalidSignature:
        raise _Refused("its signed part was changed, or another key made it") from None
    except ValueError as error:
        if str(error).startswith(MISMATCH):
            return _differences(config, bundle, str(error))
        if "Cannot use" in str(error):  # a link that leads nowhere, a pipe
            raise HfbenchError(str(error), where=folder, remedy="mend or remove it") from error
        raise _Refused(str(error)) from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise SignatureDamaged("is not laid out as a signature", where=signature, remedy=SIGN_AGAIN) from error
    except Exception as error:
        if type(error).__module__.startswith("OpenSSL"):
            raise _Refused(f"its certificate does not lead to those given ({error})") from error
        raise
    return Covered(same=tuple(sorted(bundle.files)))


def _recording() -> Any:
    """The library's verification, which keeps both lists of files where they differ."""
    from model_signing import verifying

    class Recording(verifying.Config):  # type: ignore[misc]
        """Keeps what it compared."""

        actual: dict[str, Any] | None = None
        expected: dict[str, Any] | None = None

        def _get_manifest_diff(self, actual: Any, expected: Any) -> list[str]:
            self.actual = {each.identifier: each.digest for each in actual.resource_descriptors()}
            self.expected = {each.identifier: each.digest for each in expected.resource_descriptors()}
            told: list[str] = super()._get_manifest_diff(actual, expected)
            return told

    return Recording()


def _differences(config: Any, bundle: Bundle, told: str) -> Covered:
    """The files that differ; a library that compares in another way tells them in its own words."""
    actual, expected = config.actual, config.expected
    if actual is None or expected is None:
        raise HfbenchError(told)

    def files(identifiers: set[str]) -> set[str]:
        return {name.rsplit(":", 2)[0] if bundle.method == "shards" else name for name in identifiers}

    here, signed = files(set(actual)), files(set(expected))
    differ = files({name for name in {*actual, *expected} if actual.get(name) != expected.get(name)})
    return Covered(
        same=tuple(sorted((here & signed) - differ)),
        changed=tuple(sorted(here & signed & differ)),
        missing=tuple(sorted(signed - here)),
        extra=tuple(sorted(here - signed)),
    )


def _with_left_out(folder: Path, signature: Path, bundle: Bundle, found: Covered) -> Covered:
    """The comparison, with the files that the signature leaves out by its own rules."""
    told = {*found.same, *found.changed, *found.extra}
    own = {signature.absolute()}
    here = {each.relative_to(folder).as_posix() for each in files_of(folder) if each.absolute() not in own}
    left_out = tuple(sorted(here - told))
    return Covered(same=found.same, changed=found.changed, missing=found.missing, extra=found.extra, left_out=left_out)


def _certificate(bundle: Bundle, signature: Path) -> Signer:
    try:
        return certificate_signer(bundle.certificate or b"")
    except ValueError:
        raise SignatureDamaged("its certificate cannot be read", where=signature, remedy=SIGN_AGAIN) from None


def _signed(bundle: Bundle, name: str) -> bool:
    """Whether a signature covers a file of that name, or files of a folder of that name."""
    return any(each == name or each.startswith(f"{name}/") for each in bundle.files)
