"""verify-signature: who signed a model, and whether its files are those that were signed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import cut
from hfbench.provenance.facts import SIGNATURE, Covered, Licence, Signer
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

NEEDS = ("model_signing", "OpenSSL")


@dataclass(frozen=True, kw_only=True)
class VerifySignatureResult:
    """Who signed the model and how its files compare; `failed` when they differ."""

    verdict: str
    """`signed` or `differs`."""
    signer: Signer
    files: Covered
    licence: Licence
    signature: str
    folder: str
    seconds: float

    @property
    def failed(self) -> bool:
        """True when a file was changed, is missing or was not signed."""
        return not self.files.whole

    @property
    def headline(self) -> str:
        """`signed by key sha256:ab12...`, or `differs: 1 changed, 2 not signed`."""
        if not self.failed:
            return f"signed by {self.signer}"
        told = {"changed": self.files.changed, "missing": self.files.missing, "not signed": self.files.extra}
        return f"differs: {', '.join(f'{len(names)} {what}' for what, names in told.items() if names)}"

    def lines(self) -> list[str]:
        """The verdict, the signer, and every file that differs."""
        from hfbench.provenance.told import difference_lines, signer_lines

        return [
            self.headline,
            f"signature  {cut(printable(self.signature), 11)}",
            f"model      {cut(printable(self.folder), 11)}",
            *signer_lines(self.signer),
            *(
                [f"licence    {cut(printable(f'{self.licence.id} ({self.licence.source})'), 11)}"]
                if self.licence.id
                else []
            ),
            f"same       {len(self.files.same)} files",
            *difference_lines(self.files),
        ]


@action("verify_signature", result=VerifySignatureResult, needs=NEEDS, extra="sign")
@dataclass(frozen=True, kw_only=True)
class VerifySignature:
    """Verify who signed a model and that its files are those that were signed; offline, with a key or a certificate.

    Without either, those of [signatures] in the configuration are tried.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    key: tuple[Path, ...] = param("Public keys in PEM that are trusted", default=(), kind="path")
    certificate: tuple[Path, ...] = param(
        "Certificates up to the root that is trusted, in PEM", default=(), kind="path"
    )
    signature: Path | None = param(f"The signature; default {SIGNATURE} in the model", default=None, kind="path")

    def perform(self, run: Run) -> VerifySignatureResult:
        """Verify the signature, then hash every file; a sentence for one that is absent, damaged or not trusted."""
        import time

        from hfbench.config import read_config
        from hfbench.models.reference import resolve
        from hfbench.paths import expand
        from hfbench.provenance.licence import read_licence
        from hfbench.provenance.verify import verify

        began, own = time.monotonic(), read_config().signatures
        folder, given = resolve(self.model).folder, bool(self.key or self.certificate)
        signature = self.signature or folder / SIGNATURE
        found = verify(
            folder,
            signature,
            run,
            keys=self.key if given else tuple(map(expand, own.keys)),
            certificates=self.certificate if given else tuple(map(expand, own.certificates)),
        )
        return VerifySignatureResult(
            verdict="signed" if found.files.whole else "differs",
            signer=found.signer,
            files=found.files,
            licence=read_licence(folder),
            signature=str(signature),
            folder=str(folder),
            seconds=round(time.monotonic() - began, 3),
        )
