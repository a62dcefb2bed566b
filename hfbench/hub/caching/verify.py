"""Compares every blob of a cache with the hash that is its name."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hfbench.errors import HfbenchError
from hfbench.hub.caching.facts import CacheReport, Damaged
from hfbench.hub.caching.read import blobs_of, links_of
from hfbench.jobs.run import Run
from hfbench.models.inventory.digest import Identity, digest_of
from hfbench.models.inventory.digest_cache import DigestCache
from hfbench.models.inventory.expected import of_digest


def verified(report: CacheReport, run: Run) -> CacheReport:
    """The report with what its blobs really are; hashes are remembered until a blob changes."""
    folders = [Path(each.path) for each in report.repos]
    blobs = [(folder, name, status.st_size) for folder in folders for name, status in sorted(blobs_of(folder).items())]
    total, done, count, odd = sum(size for *_, size in blobs), 0, 0, 0
    damaged = []
    with DigestCache() as cache:
        for folder, name, size in blobs:
            expected = of_digest(name, "")
            if expected is None:
                odd += 1
            else:
                count += 1
                found = _found(folder / "blobs" / name, cache, git=expected.algorithm == "git-sha1")
                if found != name:
                    damaged.append((folder, name, found))
            done += size
            run.progress("verify", done, total, "B")
    return replace(report, verified=count, unverifiable=odd, damaged=tuple(_named(damaged)))


def _found(path: Path, cache: DigestCache, *, git: bool) -> str:
    """The hash of a blob, or the sentence that says why there is none."""
    try:
        digest = cache.find(Identity.of(os.stat(path)), git=git)
        if digest is None:
            begun = time.time_ns()
            digest, identity = digest_of(path, path.parent, git=git, read=lambda count: None, stopped=lambda: False)
            cache.keep(identity, digest, begun)
    except HfbenchError as error:
        return error.found
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return (digest.git_sha1 if git else digest.sha256) or ""


def _named(damaged: Sequence[tuple[Path, str, str]]) -> list[Damaged]:
    """Damaged blobs with the files of snapshots that are they."""
    told = []
    for folder, name, found in damaged:
        files: dict[str, list[str]] = defaultdict(list)
        for snapshot in sorted((folder / "snapshots").glob("*")):
            for path, blob in links_of(snapshot):
                files[blob].append(f"{snapshot.name[:12]}/{path}")
        text = found if " " in found else f"its hash is {found}"
        told.append(Damaged(path=str(folder / "blobs" / name), text=text, files=tuple(files[name])))
    return told
