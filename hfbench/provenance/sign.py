"""Signs a model with OpenSSF model signing, offline, by an elliptic key or with a certificate."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.errors import HfbenchError, UsageError
from hfbench.provenance.bundle import read_bundle
from hfbench.provenance.facts import Signer
from hfbench.provenance.folder import NEVER, files_of, hashing_of, name_inside, total_bytes
from hfbench.provenance.keys import PrivateKey, certificate_signer, read_private, require_certificates
from hfbench.provenance.progress import telling_reads

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


def sign(
    folder: Path,
    signature: Path,
    key: Path,
    run: Run,
    *,
    certificate: Path | None = None,
    chain: Sequence[Path] = (),
    password_from: str = "",
    replace: bool = False,
) -> tuple[Signer, frozenset[str]]:
    """Write the signature of a folder: who signed, and the files that are covered.

    The signature appears whole or not at all. UsageError for a key that cannot be used.
    """
    private = read_private(key, password_from)
    require_certificates([each for each in (certificate, *chain) if each is not None])
    if signature.exists() and not replace:
        raise UsageError("there is a signature already", where=signature, remedy="give --replace to sign anew")
    total = total_bytes(files_of(folder))
    with tempfile.TemporaryDirectory() as scratch, telling_reads(run, "hash", total):
        made = Path(scratch) / "signature"
        _write(folder, made, private, certificate, chain, ignored=(*NEVER, *name_inside(folder, signature)))
        whole = made.read_bytes()
        bundle = read_bundle(made)
    put_whole(signature, whole)
    signer = (
        certificate_signer(bundle.certificate)
        if bundle.certificate
        else Signer(how="key", fingerprint=private.fingerprint)
    )
    return signer, bundle.files


def put_whole(path: Path, data: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    partial = path.with_name(f".signature.{os.getpid()}.partial")  # a name may be as long as names can be
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        remedy = "give another place with --signature"
        raise HfbenchError(f"the signature cannot be written: {error.strerror}", where=path, remedy=remedy) from error


def _write(
    folder: Path,
    made: Path,
    private: PrivateKey,
    certificate: Path | None,
    chain: Sequence[Path],
    ignored: Sequence[str],
) -> None:
    from model_signing import signing

    config = signing.Config().set_hashing_config(hashing_of(folder, ignored))
    with _in_memory(private.pem) as key:
        try:
            if certificate is None:
                config.use_elliptic_key_signer(private_key=key)
            else:
                config.use_certificate_signer(
                    private_key=key, signing_certificate=certificate, certificate_chain=list(chain)
                )
        except ValueError as error:
            raise UsageError(f"the certificate cannot be used: {error}", where=certificate or "") from error
    try:
        config.sign(folder, made)
    except ValueError as error:
        raise HfbenchError(str(error), where=folder, remedy="mend or remove what is no file of the model") from error


@contextlib.contextmanager
def _in_memory(data: bytes) -> Iterator[Path]:
    """A path that the library can read, and no disk holds."""
    fd = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        os.write(fd, data)
        yield Path(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
