"""sign: the signature of a model by OpenSSF model signing, offline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import cut
from hfbench.provenance.facts import SIGNATURE, Signer
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

NEEDS = ("model_signing", "OpenSSL")


@dataclass(frozen=True, kw_only=True)
class SignResult:
    """Who signed what, and where the signature lies."""

    signature: str
    folder: str
    signer: Signer
    files: tuple[str, ...]
    bytes: int

    @property
    def headline(self) -> str:
        """`11 files signed by key sha256:ab12...`."""
        return f"{len(self.files)} files signed by {self.signer}"

    def lines(self) -> list[str]:
        """The signature, the signer and how much is covered."""
        from hfbench.provenance.told import signer_lines
        from hfbench.units import show_bytes

        return [
            f"signature  {cut(printable(self.signature), 11)}",
            f"model      {cut(printable(self.folder), 11)}",
            *signer_lines(self.signer),
            f"covers     {len(self.files)} files, {show_bytes(self.bytes)}",
        ]


@action("sign", result=SignResult, needs=NEEDS, extra="sign")
@dataclass(frozen=True, kw_only=True)
class Sign:
    """Sign a model with an elliptic key, or with a certificate of it; offline, in the format of OpenSSF model signing.

    Every file below the folder is hashed, links of a Hugging Face cache followed; those of git and .cache are left out.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    key: Path = param("Private key in PEM, of the curve P-256, P-384 or P-521", kind="path")
    certificate: Path | None = param("Signing certificate of the key, in PEM", default=None, kind="path")
    chain: tuple[Path, ...] = param("Certificates between that one and its root, in PEM", default=(), kind="path")
    password_from: str = param("Environment variable with the password of an encrypted key", default="")
    signature: Path | None = param(f"Where to write it; default {SIGNATURE} in the model", default=None, kind="path")
    replace: bool = param("Put it in place of a signature that is there", default=False)

    def perform(self, run: Run) -> SignResult:
        """Hash and sign; UsageError for a key that cannot be used."""
        from hfbench.models.reference import resolve
        from hfbench.provenance.folder import files_of, total_bytes
        from hfbench.provenance.sign import sign

        folder = resolve(self.model).folder
        signature = self.signature or folder / SIGNATURE
        signer, files = sign(
            folder,
            signature,
            self.key,
            run,
            certificate=self.certificate,
            chain=self.chain,
            password_from=self.password_from,
            replace=self.replace,
        )
        run.artifact(signature.absolute(), "signature")
        covered = [each for each in files_of(folder) if each.relative_to(folder).as_posix() in files]
        return SignResult(
            signature=str(signature),
            folder=str(folder),
            signer=signer,
            files=tuple(sorted(files)),
            bytes=total_bytes(covered),
        )
