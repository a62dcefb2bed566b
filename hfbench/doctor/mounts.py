"""File systems as /proc/self/mountinfo tells them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "fuse.sshfs"}
    | {"fuse.s3fs", "fuse.gcsfuse", "fuse.blobfuse2", "fuse.juicefs", "fuse.glusterfs", "fuse.rclone", "fuse.mount-s3"}
    | {"pvfs2", "orangefs", "wekafs", "virtiofs"}
)

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One file system: where it is mounted, its kind, what stands behind it, and its options."""

    point: Path
    kind: str
    source: str
    options: frozenset[str]

    @property
    def in_memory(self) -> bool:
        """True where files take memory, and are gone after a restart."""
        return self.kind in IN_MEMORY

    @property
    def network(self) -> bool:
        """True where another machine holds the files."""
        return self.kind in NETWORK


def read_mounts(text: str) -> tuple[Mount, ...]:
    """The rows of a mountinfo file, in its order; rows that are not understood are left out."""
    return tuple(mount for line in text.splitlines() if (mount := _mount(line.split(" "))) is not None)


def mount_of(path: Path, mounts: Sequence[Mount]) -> Mount | None:
    """The mount a path without links lies on: the longest that holds it, and of those the last."""
    holding = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(reversed(holding), key=lambda mount: len(mount.point.parts), default=None)


def _mount(words: Sequence[str]) -> Mount | None:
    if len(words) < 10 or "-" not in words[6:]:
        return None
    kind, source, *more = words[words.index("-", 6) + 1 :]
    options = {*words[5].split(","), *(more[0].split(",") if more else ())}
    return Mount(point=Path(_plain(words[4])), kind=kind, source=_plain(source), options=frozenset(options))


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
