"""Where the hub keeps what: pure paths below one folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FANS = tuple(f"{number:02x}" for number in range(256))
"""Folders of the first two digits: made at the start, so that a new file costs one fsync of a folder."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The folder of one hub."""

    root: Path

    @property
    def settings(self) -> Path:
        """What was said at `registry init`."""
        return self.root / "registry.toml"

    @property
    def secret(self) -> Path:
        """The key that signs links, readable by its owner alone."""
        return self.root / "secret.key"

    @property
    def database(self) -> Path:
        """The SQLite file, unless the settings name another database."""
        return self.root / "registry.db"

    @property
    def identity(self) -> Path:
        """The word by which the folder knows its database."""
        return self.root / "database.id"

    @property
    def lock(self) -> Path:
        """Held by every server of this folder."""
        return self.root / "serve.lock"

    @property
    def drafts(self) -> Path:
        """Files that are being written: never read, swept away at the start."""
        return self.root / "tmp"

    @property
    def uploads(self) -> Path:
        """Files that arrive in parts; they outlive a restart until their links expire."""
        return self.root / "uploads"

    @property
    def counters(self) -> Path:
        """What workers counted, for each other."""
        return self.root / "run"

    def blob(self, sha256: str) -> Path:
        """A file that was uploaded whole."""
        return self.root / "blobs" / sha256[:2] / sha256

    def cached(self, sha256: str) -> Path:
        """A file that was rebuilt from xorbs and can be again."""
        return self.root / "cache" / sha256[:2] / sha256

    def xorb(self, name: str) -> Path:
        """A xorb by its spelled hash."""
        return self.root / "xorbs" / name[:2] / name

    def folders(self) -> Iterator[Path]:
        """Every folder there has to be, parents first."""
        yield from (self.root, self.drafts, self.uploads, self.counters)
        for kind in ("blobs", "xorbs", "cache"):
            yield self.root / kind
            yield from (self.root / kind / fan for fan in FANS)
