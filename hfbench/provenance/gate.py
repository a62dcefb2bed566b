"""What a model must show before something is built from it: a signature where one is asked for, a licence that is
allowed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.paths import expand
from hfbench.provenance.bundle import Unsigned
from hfbench.provenance.facts import SIGNATURE, Covered, Provenance
from hfbench.provenance.licence import read_licence, require_licence

if TYPE_CHECKING:
    from hfbench.config import Config
    from hfbench.jobs.run import Run

SHOWN = 3


class GateClosed(HfbenchError):
    """The signature is right, and the files are not those that were signed."""


def require(
    model_folder: Path,
    *,
    require_signature: bool,
    config: Config,
    run: Run,
    keys: Sequence[Path] = (),
    certificates: Sequence[Path] = (),
    signature: Path | None = None,
) -> Provenance:
    """What is known of where a model comes from, when it may pass.

    `keys` and `certificates` take the place of those of the configuration. Raises a sentence for an unsigned or changed
    model, a key that is not trusted, and a licence that [licences] does not allow. Without `require_signature` no
    signature is looked at, and `signed_by` stays empty.
    """
    licence = read_licence(model_folder)
    require_licence(licence, allow=config.licences.allow, deny=config.licences.deny, model=str(model_folder))
    found = Provenance(licence=licence.id, licence_source=licence.source)
    if not require_signature:
        return found
    _require_library()
    from hfbench.provenance.verify import verify

    own = not keys and not certificates
    if own and not config.signatures.keys and not config.signatures.certificates:
        raise UsageError(
            "a signature was asked for, and the configuration names no key to verify it with",
            where="require_signature",
            remedy="write keys or certificates under [signatures] into the configuration",
        )
    file = signature or model_folder / SIGNATURE
    if not signature and not os.path.lexists(file):
        remedy = f"sign it with `hfbench sign MODEL --key KEY`, or put its signature there as {SIGNATURE}"
        raise Unsigned("the model is not signed: there is no such file", where=file, remedy=remedy)
    verified = verify(
        model_folder,
        file,
        run,
        keys=tuple(map(expand, config.signatures.keys)) if own else keys,
        certificates=tuple(map(expand, config.signatures.certificates)) if own else certificates,
    )
    require_whole(verified.files, model_folder)
    run.log(f"signed by {verified.signer}")
    return Provenance(
        signed_by=str(verified.signer),
        licence=licence.id,
        licence_source=licence.source,
        signature=str(file),
    )


def require_whole(files: Covered, folder: Path) -> None:
    """GateClosed unless every file is as it was signed, and none is beside those."""
    for what, names in (
        ("changed since it was signed", files.changed),
        ("is missing, and was signed", files.missing),
        ("is not signed", (*files.extra, *files.left_out)),
    ):
        if names:
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            remedy = "fetch the model again, or have it signed anew; `hfbench verify-signature` lists the files"
            raise GateClosed(f"{', '.join(names[:SHOWN])}{more} {what}", where=folder, remedy=remedy)


def _require_library() -> None:
    from importlib.util import find_spec

    lacking = [name for name in ("model_signing", "OpenSSL") if find_spec(name) is None]
    if lacking:
        install = "install it with: pip install 'hfbench[sign]'"
        raise MissingError(f"verifying signatures needs {', '.join(lacking)}, which this Python lacks", remedy=install)
