"""Which model a reference means: two ways of writing one model are one model."""

from __future__ import annotations

import os
import re

from hfbench.errors import HfbenchError
from hfbench.models.reference import CACHED, resolve
from hfbench.paths import expand

_SNAPSHOT = re.compile(rf"{CACHED}([^/]+)/snapshots/([0-9a-f]{{40}})")


def identity(reference: str, cwd: str = "") -> str:
    """What a reference leads to: `org/name@commit` of a model in a cache, else the real path of its folder or file.

    Relative paths begin at `cwd`, where one is given. What leads nowhere on this machine is told as it was written.
    """
    path = os.path.join(cwd, expand(reference)) if cwd else ""
    try:
        location = resolve(path if path and os.path.lexists(path) else reference)
    except (HfbenchError, OSError, ValueError):
        return reference.strip()
    return os.path.join(folder_identity(str(location.folder)), location.only).rstrip("/")


def folder_identity(folder: str) -> str:
    """The same of the folder that a reference led to, be it on another machine."""
    real = os.path.realpath(folder)
    if (found := _SNAPSHOT.search(real)) is None:
        return real
    return f"{found[1].replace('--', '/', 1)}@{found[2]}"


def names_a_commit(identity: str) -> bool:
    """Whether an identity holds on every machine: a repository at a commit."""
    return not identity.startswith("/") and re.search(r"@[0-9a-f]{40}", identity) is not None
