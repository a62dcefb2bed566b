"""Files brought to a new place: by reflink where the file system can, by hard link where wished, else copied."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import BinaryIO, Literal

from hfbench.errors import UsageError
from hfbench.registry.storage.drafts import READ_ONLY, Draft, sync_folder
from hfbench.registry.storage.layout import Layout

How = Literal["link", "clone", "copy"]
WAYS = ("auto", "link", "clone", "copy")
FICLONE = 0x40049409
PIECE = 4 << 20
CANNOT = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EPERM, errno.EMLINK, errno.EACCES)


class Placer:
    """Places files durably and read-only, by way of a folder for drafts on the same file system.

    `auto` takes a reflink and else a copy: the new file shares no fate with the old one. `link` makes both one file.
    """

    def __init__(self, layout: Layout, way: str = "auto") -> None:
        self._layout, self.way = layout, way
        self.counts: dict[str, int] = {"link": 0, "clone": 0, "copy": 0}

    def place(self, source: Path, target: Path) -> How:
        """Let `target` have the content of `source`; how it was done. UsageError when the way asked for cannot be."""
        how = self._linked(source, target) if self.way == "link" else None
        if how is None:
            with Draft(self._layout) as draft, source.open("rb") as file:
                how = self._filled(draft, file)
                draft.keep(target)
        self.counts[how] += 1
        return how

    def _linked(self, source: Path, target: Path) -> How | None:
        """The file itself under one more name; it becomes read-only under all of them."""
        fresh = self._layout.drafts / f"{target.name}.link"
        try:
            os.link(source.resolve(), fresh)
            os.chmod(fresh, READ_ONLY)
            os.replace(fresh, target)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            if error.errno not in CANNOT:
                raise
            raise UsageError(
                f"cannot be linked: {error.strerror}", where=source, remedy="leave out the way, or give copy"
            ) from error
        sync_folder(target.parent)
        return "link"

    def _filled(self, draft: Draft, file: BinaryIO) -> How:
        if self.way in ("auto", "clone"):
            try:
                fcntl.ioctl(draft.file.fileno(), FICLONE, file.fileno())
                return "clone"
            except OSError as error:
                if error.errno not in CANNOT:
                    raise
                if self.way == "clone":
                    raise UsageError(
                        "the file system has no reflinks from there to here", remedy="leave out the way, or give copy"
                    ) from error
        while data := file.read(PIECE):
            draft.write(data)
        return "copy"
