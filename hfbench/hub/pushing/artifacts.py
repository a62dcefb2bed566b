"""Engines, reports and benchmark results that lie beside a model on a hub, each in a folder named by its content."""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.client import HubClient
from hfbench.hub.facts import HubFile
from hfbench.hub.pushing.changes import digest_with, files_to_push
from hfbench.hub.pushing.facts import FOLDERS, Artifact, ArtifactKind
from hfbench.models.files import ModelFile, describe_file
from hfbench.models.inventory.digest_cache import DigestCache
from hfbench.paths import expand

LABEL = "hfbench-artifact.json"
MOST_LABEL = 64 << 10
FINGERPRINT = 16
"""Hexadecimal digits of the hash over names and contents."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """Files of an artifact, where they go, and the label that goes with them."""

    kind: ArtifactKind
    folder: Path
    files: tuple[ModelFile, ...]
    fingerprint: str
    label: bytes

    @property
    def below(self) -> str:
        """Its folder on the hub, with a slash at the end."""
        return f"{FOLDERS[self.kind]}/{self.fingerprint}/"


def parcel(given: str, commit: str) -> Parcel:
    """`engine:PATH`, `report:PATH` or `benchmark:PATH`, a file or a folder, packed to lie beside a commit.

    The same content gets the same fingerprint wherever and whenever it is made.
    """
    kind, colon, text = given.partition(":")
    if not colon or kind not in FOLDERS or not text:
        raise UsageError(f"{given!r} names no artifact", remedy=f"write KIND:PATH; kinds are {', '.join(FOLDERS)}")
    path = expand(text)
    if path.is_dir():
        folder, files = path, files_to_push(path)
    elif path.is_file():
        folder, files = path.parent, [describe_file(path, path.parent)]
    else:
        raise UsageError("there is nothing there", where=path, remedy="give the file or the folder of the artifact")
    if any(each.name == LABEL for each in files):
        raise HfbenchError(f"holds a file {LABEL}, which is written here", where=path, remedy="remove it")
    with DigestCache() as cache:
        hashes = {each.name: digest_with(cache, each, folder).sha256 for each in files}
    told = json.dumps(sorted(hashes.items())).encode()
    fingerprint = hashlib.sha256(told).hexdigest()[:FINGERPRINT]
    label = {
        "kind": kind,
        "name": path.resolve().name,
        "fingerprint": fingerprint,
        "made_for": commit,
        "pushed_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "files": hashes,
    }
    return Parcel(
        cast(ArtifactKind, kind), folder, tuple(files), fingerprint, json.dumps(label, indent=1).encode() + b"\n"
    )


def artifacts_of(client: HubClient, repo: str, revision: str) -> tuple[str, list[Artifact]]:
    """The commit of a revision and the artifacts that lie in it; one without a readable label is listed by its path."""
    commit = client.info(repo, revision).commit
    return commit, read_artifacts(client, repo, commit, client.files(repo, commit))


def read_artifacts(client: HubClient, repo: str, commit: str, files: Sequence[HubFile]) -> list[Artifact]:
    """The artifacts among the files of a commit; only their labels are fetched."""
    grouped: dict[tuple[str, str], list[HubFile]] = defaultdict(list)
    kinds = {folder: kind for kind, folder in FOLDERS.items()}
    for each in files:
        parts = each.path.split("/")
        if parts[0] in kinds and len(parts) > 2:
            grouped[parts[0], parts[1]].append(each)
    found = []
    for (folder, name), every in sorted(grouped.items()):
        path = f"{folder}/{name}"
        label = next((each for each in every if each.path == f"{path}/{LABEL}"), None)
        told = _read_label(client, repo, commit, label) if label else {}
        found.append(
            Artifact(
                kind=cast(ArtifactKind, kinds[folder]),
                path=path,
                name=told.get("name") or name,
                fingerprint=told.get("fingerprint") or name,
                files=len(every) - (label is not None),
                bytes=sum(each.size for each in every if each is not label),
                made_for=told.get("made_for", ""),
                pushed_at=told.get("pushed_at", ""),
            )
        )
    return found


def _read_label(client: HubClient, repo: str, commit: str, file: HubFile) -> dict[str, str]:
    """The texts of a label; empty for one that is none."""
    if file.size > MOST_LABEL:
        return {}
    with client.read_file(repo, commit, file.path) as stream:
        data = b"".join(stream.chunks(MOST_LABEL))
    try:
        told: Any = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return {key: value for key, value in told.items() if isinstance(value, str)} if isinstance(told, dict) else {}
