"""What is looked at before a byte leaves: findings of the check rules, the model card, and what must stay secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from hfbench.checks.run import check
from hfbench.errors import HfbenchError
from hfbench.hub.pushing.facts import Concern
from hfbench.models.files import ModelFile, open_regular, read_text

SECRET_NAMES = (
    ".env",
    ".env.*",
    "*.env",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "*.p12",
    "*.pfx",
    "*.kdbx",
    "credentials",
    "credentials.json",
    "hf_token",
    "stored_tokens",
)
HARMLESS_NAMES = (".env.example", ".env.sample", ".env.template")
SECRETS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("a Hugging Face token", re.compile(rb"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{34,}(?![A-Za-z0-9])")),
    ("a token of an hfbench registry", re.compile(rb"(?<![A-Za-z0-9_])hfb_[A-Za-z0-9_-]{40,}")),
    ("a GitHub token", re.compile(rb"(?<![A-Za-z0-9_])(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})")),
    ("an AWS key", re.compile(rb"(?<![A-Z0-9])AKIA[A-Z0-9]{16}(?![A-Z0-9])")),
    ("an API key", re.compile(rb"(?<![A-Za-z0-9_-])sk-(?:proj-|ant-)?[A-Za-z0-9_-]{40,}")),
    ("a Slack token", re.compile(rb"(?<![A-Za-z0-9_])xox[abprs]-[A-Za-z0-9-]{20,}")),
    ("a private key", re.compile(rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----")),
)
MOST_READ = 2 << 20
"""Bytes of a file that are searched for secrets; larger ones are weights and vocabularies."""
MOST_CARD = 1 << 20
SEARCHED_NOT = (".safetensors", ".bin", ".gguf", ".onnx", ".pt", ".pth", ".h5", ".msgpack", ".npz")
LICENSES = ("LICENSE*", "LICENCE*", "COPYING*", "license*")


def concerns_about(folder: Path, files: Sequence[ModelFile], *, model: bool) -> list[Concern]:
    """Everything that speaks against pushing these files, secrets first. `model` asks the check rules too."""
    found = [*secrets_in(folder, files)]
    if model:
        pushed = {each.name for each in files}
        found += [
            each for each in _findings(folder) if not each.file or each.file in pushed or not _is_there(folder, each)
        ]
        found += card_concerns(folder, files)
    order = {"secret": 0, "error": 1, "warning": 2}
    return sorted(found, key=lambda each: order[each.severity])


def secrets_in(folder: Path, files: Sequence[ModelFile]) -> Iterator[Concern]:
    """Files that look as if they held tokens or keys, by name and by content. What was found is never repeated."""
    for each in files:
        base = each.name.rpartition("/")[2]
        named = any(fnmatchcase(base.lower(), pattern) for pattern in SECRET_NAMES)
        if named and base.lower() not in HARMLESS_NAMES:
            yield Concern(severity="secret", file=each.name, text="its name says that it holds secrets")
        elif (what := _secret(each, folder)) is not None:
            yield Concern(severity="secret", file=each.name, text=f"it holds what looks like {what}")


def card_concerns(folder: Path, files: Sequence[ModelFile]) -> Iterator[Concern]:
    """Warnings of a model without a card, or without a licence."""
    names = {each.name for each in files}
    if "README.md" not in names:
        yield Concern(
            severity="warning", file="README.md", text="there is no model card: nobody will know what this is"
        )
        return
    try:
        text = read_text(folder / "README.md", MOST_CARD, folder)
    except HfbenchError as error:
        yield Concern(severity="warning", file="README.md", text=f"the model card {error.found}")
        return
    stated = re.search(r"^licen[sc]e(_name)?\s*:\s*\S", _head(text), re.MULTILINE)
    if not stated and not any(fnmatchcase(name, pattern) for name in names for pattern in LICENSES):
        found = "no licence is named, in the card (license: mit) or as a file LICENSE: others may not use the model"
        yield Concern(severity="warning", file="README.md", text=found)


def _findings(folder: Path) -> Iterator[Concern]:
    for each in check(str(folder)).findings:
        if each.severity != "info":
            text = f"{each.id} {each.message}" + (f"; {each.remedy}" if each.remedy else "")
            yield Concern(severity=each.severity, file=each.file, text=text)


def _is_there(folder: Path, concern: Concern) -> bool:
    """Whether a finding is about a file that is in the folder; of one that is missing nothing was left out."""
    return (folder / concern.file).exists()


def _head(text: str) -> str:
    """The data at the head of a card, between its two lines of dashes."""
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return ""
    end = next((place for place, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    return "\n".join(lines[1:end])


def _secret(file: ModelFile, folder: Path) -> str | None:
    if file.problem or not 0 < file.bytes <= MOST_READ or file.name.lower().endswith(SEARCHED_NOT):
        return None
    try:
        with open_regular(file.path, folder) as opened:
            data = opened.read(MOST_READ)
    except (HfbenchError, OSError):
        return None  # hashing it will say why
    return next((what for what, pattern in SECRETS if pattern.search(data)), None)
