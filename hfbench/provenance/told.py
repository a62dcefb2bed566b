"""Signers and differences as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.line_width import cut
from hfbench.provenance.facts import Covered, Signer
from hfbench.text import printable

LABEL = 11
SHOWN = 8


def signer_lines(signer: Signer) -> Iterator[str]:
    """The key, and for a certificate its subject, issuer and dates."""
    for label, text in (
        ("signer", signer.subject),
        ("issuer", signer.issuer),
        ("valid", signer.valid),
        ("key", f"sha256:{signer.fingerprint}"),
    ):
        if text:
            yield f"{label:<{LABEL}}{cut(printable(text), LABEL)}"


def difference_lines(files: Covered) -> Iterator[str]:
    """A row a file that is not as it was signed, and files the signature leaves out."""
    for label, names in (
        ("changed", files.changed),
        ("missing", files.missing),
        ("not signed", files.extra),
        ("left out", files.left_out),
    ):
        for number, name in enumerate(names[:SHOWN]):
            yield f"{'' if number else label:<{LABEL}}{cut(printable(name), LABEL)}"
        if len(names) > SHOWN:
            yield f"{'':<{LABEL}}and {len(names) - SHOWN} more (--json lists all)"
