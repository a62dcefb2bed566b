"""The licence of a model: from its card, its configuration or its licence file, in names like those of SPDX."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.provenance.facts import Licence

CARD, CONFIG = "README.md", "config.json"
FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt", "COPYING", "USE_POLICY.md")
MOST = 1 << 20
"""Bytes of a card or a licence file that are read."""
REFERENCE = "LicenseRef-"
"""How SPDX names a licence that is not on its list."""
TOGETHER = " AND "
"""Between licences of a model that tells of several: each must be allowed."""

# First words of licence files, and what they are; the first that is found.
TEXTS = (
    (re.compile(r"Apache License\s+Version 2\.0"), "Apache-2.0"),
    (re.compile(r"\bMIT License\b|Permission is hereby granted, free of charge"), "MIT"),
    (re.compile(r"LLAMA\s+([\d.]+) COMMUNITY LICENSE", re.IGNORECASE), f"{REFERENCE}llama{{}}"),
    (re.compile(r"Gemma Terms of Use", re.IGNORECASE), f"{REFERENCE}gemma"),
    (re.compile(r"RAIL(?:-M|\+\+-M)?\b.{0,40}License", re.IGNORECASE), f"{REFERENCE}openrail"),
    (re.compile(r"GNU AFFERO GENERAL PUBLIC LICENSE\s+Version 3"), "AGPL-3.0-only"),
    (re.compile(r"GNU LESSER GENERAL PUBLIC LICENSE\s+Version 3"), "LGPL-3.0-only"),
    (re.compile(r"GNU GENERAL PUBLIC LICENSE\s+Version 3"), "GPL-3.0-only"),
    (re.compile(r"GNU GENERAL PUBLIC LICENSE\s+Version 2"), "GPL-2.0-only"),
    (re.compile(r"Mozilla Public License Version 2\.0"), "MPL-2.0"),
    (re.compile(r"Attribution-NonCommercial-ShareAlike 4\.0"), "CC-BY-NC-SA-4.0"),
    (re.compile(r"Attribution-NonCommercial 4\.0"), "CC-BY-NC-4.0"),
    (re.compile(r"Attribution-ShareAlike 4\.0"), "CC-BY-SA-4.0"),
    (re.compile(r"Attribution 4\.0 International"), "CC-BY-4.0"),
)

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^(license|license_name):[ \t]*(.*)$((?:\n[ \t]*-[ \t]+.*$)*)", re.MULTILINE)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.+-]+")


class LicenceRefused(HfbenchError):
    """The configuration does not allow a model's licence."""


def read_licence(folder: Path) -> Licence:
    """The licence of the model in a folder: its card tells first, then config.json, then a licence file."""
    for name, told in ((CARD, _of_card(_text(folder / CARD))), (CONFIG, _of_config(_text(folder / CONFIG)))):
        if told:
            return Licence(id=TOGETHER.join(map(normalised, told)), told=", ".join(told), source=name)
    for name in FILES:
        text = _text(folder / name)
        if found := _of_text(text):
            return Licence(id=found, told=text.strip().partition("\n")[0].strip()[:80], source=name)
    return Licence()


def normalised(told: str) -> str:
    """`apache-2.0` -> `Apache-2.0`; what SPDX does not list becomes `LicenseRef-NAME` in small letters."""
    plain = told.strip().lower()
    if known := _spdx().get(plain):
        return known
    name = _NOT_IN_NAMES.sub("-", plain.removeprefix(REFERENCE.lower())).strip("-")
    return f"{REFERENCE}{name or 'other'}"


def require_licence(licence: Licence, *, allow: Sequence[str], deny: Sequence[str], model: str) -> None:
    """LicenceRefused unless the lists let the licence pass: none of `deny`, and, where `allow` names any, one of it.

    Entries may be written as model cards write them, and may hold `*`.
    """
    ids = [each for each in licence.id.split(TOGETHER) if each]
    for each in ids:
        if entry := _entry_for(each, deny):
            found = f"its licence {each} ({licence.source}) is denied by {entry!r}"
            raise LicenceRefused(found, where=model, remedy="use another model, or change [licences] deny")
    if not allow:
        return
    if not ids:
        remedy = "write `license:` into the front matter of its README.md, or clear [licences] allow"
        raise LicenceRefused("it tells no licence, and only some are allowed", where=model, remedy=remedy)
    for each in ids:
        if not _entry_for(each, allow):
            found = f"its licence {each} ({licence.source}) is not among those allowed: {', '.join(allow)}"
            raise LicenceRefused(found, where=model, remedy="use another model, or add it to [licences] allow")


@lru_cache(maxsize=1)
def _spdx() -> dict[str, str]:
    """Identifiers of SPDX by their small letters and by what model cards write for them."""
    rows = map(str.split, (files("hfbench.provenance") / "spdx.txt").read_text("utf-8").splitlines())
    return {name.lower(): row[0] for row in rows for name in row}


def _entry_for(id: str, entries: Sequence[str]) -> str:
    """The first entry of a list that means a licence; empty when none does."""
    for entry in entries:
        spelled = entry.strip() if "*" in entry else normalised(entry)
        if fnmatchcase(id.lower(), spelled.lower()):
            return entry
    return ""


def _of_card(text: str) -> list[str]:
    """`license` of the YAML at the head of a card, with `license_name` in place of `other`."""
    front = _FRONT.match(text)
    entries = {match[1]: match for match in _ENTRY.finditer(front[1] if front else "")}
    if "license" not in entries:
        return []
    value, lines = entries["license"][2].strip(), entries["license"][3]
    listed = value.strip("[]").split(",") if value.startswith("[") else [value]
    listed += [line.strip().removeprefix("-") for line in lines.splitlines()]
    told = [plain for each in listed if (plain := each.partition(" #")[0].strip().strip("'\""))]
    name = entries["license_name"][2].strip().strip("'\"") if "license_name" in entries else ""
    return [name if each.lower() == "other" and name else each for each in told]


def _of_config(text: str) -> list[str]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return []
    told = data.get("license") if isinstance(data, dict) else None
    return [told.strip()] if isinstance(told, str) and told.strip() else []


def _of_text(text: str) -> str:
    head = text[:4000]
    for pattern, id in TEXTS:
        if found := pattern.search(head):
            return id.format(*found.groups())
    return f"{REFERENCE}other" if text.strip() else ""


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(MOST).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return ""
