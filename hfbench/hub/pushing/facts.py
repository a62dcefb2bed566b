"""What a push found and did, as plain records; light to import, for declarations of actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArtifactKind = Literal["engine", "report", "benchmark"]
FOLDERS: dict[str, str] = {"engine": "engines", "report": "reports", "benchmark": "benchmarks"}
"""Where artifacts of a kind lie beside a model: `engines/FINGERPRINT/...`."""


@dataclass(frozen=True, kw_only=True)
class Concern:
    """Something that speaks against a push; `refuses` unless it is forced, `secret` always."""

    severity: Literal["secret", "error", "warning"]
    file: str
    text: str


@dataclass(frozen=True, kw_only=True)
class PushedFile:
    """One file of a push, `bytes` long, by its path on the hub."""

    path: str
    bytes: int
    state: Literal["new", "changed", "unchanged"]


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """A commit on a hub, or what a dry run would commit. `changed_bytes` is the size of files that are new or changed;
    of those only chunks that the hub lacks travel, where it takes chunks."""

    folder: str
    repo: str
    endpoint: str
    url: str
    revision: str
    files: tuple[PushedFile, ...]
    bytes: int
    changed_bytes: int
    only_there: int
    """Files on the hub that the folder does not have; they stay."""
    concerns: tuple[Concern, ...]
    artifacts: tuple[str, ...] = ()
    created: bool = False
    commit: str = ""
    commit_url: str = ""
    seconds: float = 0.0
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """Something that was pushed beside a model. `path` is its folder on the hub."""

    kind: ArtifactKind
    path: str
    name: str
    fingerprint: str
    files: int
    bytes: int
    made_for: str = ""
    """The commit of the model it lies beside since; empty where nothing tells."""
    pushed_at: str = ""
