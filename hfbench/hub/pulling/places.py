"""Where a download lands: blobs and links of a Hugging Face cache, or plain files of a folder."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from pathlib import Path
from typing import Protocol

from hfbench.errors import HfbenchError
from hfbench.hub.facts import HubFile
from hfbench.hub.pulling.copying import content_elsewhere
from hfbench.hub.pulling.judge import new_hash
from hfbench.hub.pulling.partial import JOURNAL, PART
from hfbench.models.inventory.expected import DOWNLOADS
from hfbench.models.reference import cached_name

LOCKS = ".locks"
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EACCES)
PIECE = 1 << 20


class Place(Protocol):
    """Where files of one commit go."""

    top: Path
    """What may be written below, and whose disk must have room."""
    snapshot: Path
    """The folder a model is loaded from."""
    notes: list[str]
    """What a person should know of this file system."""

    def has(self, file: HubFile) -> bool:
        """Whether the file is in its place, whole."""

    def holds(self, file: HubFile) -> bool:
        """Whether its content is here already, so that nothing has to come over the network."""

    def elsewhere(self, file: HubFile) -> Path | None:
        """Where on this machine the content seems to be too."""

    def part(self, file: HubFile) -> tuple[Path, Path]:
        """The partial file and its journal."""

    def lock(self, file: HubFile) -> Path:
        """The lock under which it is downloaded."""

    def publish(self, part: Path, file: HubFile) -> None:
        """Take a verified partial file for the content."""

    def put(self, file: HubFile, like: HubFile) -> None:
        """Bring a content that is here, as `like` is, to the place of a file."""


class CachePlace:
    """A repository of a Hugging Face cache, to the letter as stock clients lay it out."""

    def __init__(self, cache: Path, repo: str, commit: str) -> None:
        self.cache, self.top = cache, cache / cached_name(repo)
        self.commit = commit
        self.snapshot = self.top / "snapshots" / commit
        self.blobs = self.top / "blobs"
        self.notes: list[str] = []
        self.damaged: set[str] = set()
        """Names of blobs that were read and are not what they are called; a good one takes their place."""
        self._mended: set[str] = set()

    def has(self, file: HubFile) -> bool:
        """A file, or a link to a blob of the right size."""
        pointer = self._pointer(file)
        try:
            return (
                file.etag not in self.damaged
                and os.stat(pointer).st_size == file.size
                and (not os.path.islink(pointer) or os.path.basename(os.readlink(pointer)) == file.etag)
            )
        except OSError:
            return False

    def holds(self, file: HubFile) -> bool:
        """A blob of that name and size: a name is a hash."""
        try:
            return file.etag not in self.damaged and os.stat(self.blobs / file.etag).st_size == file.size
        except OSError:
            return False

    def elsewhere(self, file: HubFile) -> Path | None:
        """In another repository of the cache."""
        return None if file.etag in self.damaged else content_elsewhere(self.cache, file)

    def part(self, file: HubFile) -> tuple[Path, Path]:
        """Beside the blob, under names that others take for broken downloads."""
        return self.blobs / f"{file.etag}{PART}", self.blobs / f"{file.etag}{JOURNAL}"

    def lock(self, file: HubFile) -> Path:
        """Where stock clients keep it."""
        return self.lock_of(file.etag)

    def lock_of(self, etag: str) -> Path:
        """The lock of a blob by its name."""
        return self.cache / LOCKS / self.top.name / f"{etag}.lock"

    def publish(self, part: Path, file: HubFile) -> None:
        """By rename: a blob is there whole or not at all."""
        os.replace(part, self.blobs / file.etag)
        if file.etag in self.damaged:
            self.damaged.discard(file.etag)
            self._mended.add(file.etag)

    def read_again(self, file: HubFile) -> bool:
        """Whether a file that is here is what its name says; one that is not counts as absent from now on."""
        if not self.has(file):
            return True
        if _digest(self._pointer(file), file) == file.etag:
            return True
        self.damaged.add(file.etag)
        return False

    def put(self, file: HubFile, like: HubFile) -> None:
        """A relative link; where the file system has none, the file itself, as stock clients do."""
        pointer, blob = self._pointer(file), self.blobs / file.etag
        pointer.parent.mkdir(parents=True, exist_ok=True)
        target = os.path.relpath(blob, pointer.parent)
        copied = file.etag in self._mended and not os.path.islink(pointer)  # a file of its own, where links are none
        if self.has(file) and not copied:
            return
        for _ in range(3):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(pointer)
            try:
                os.symlink(target, pointer)
            except FileExistsError:  # another process was quicker
                if self.has(file):
                    return
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                self._copy(blob, pointer)
                return
            else:
                return
        raise HfbenchError("something makes this entry again and again", where=pointer, remedy="look at who writes it")

    def finish(self, revision: str) -> None:
        """Let a branch or tag mean this commit, now that its files are there."""
        self.snapshot.mkdir(parents=True, exist_ok=True)
        if self.blobs.is_dir():
            _sync(self.blobs)
        if revision == self.commit:
            return
        ref = self.top / "refs" / revision
        ref.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            if ref.read_bytes() == self.commit.encode():
                return
        new = self.top / f".ref-{os.getpid()}.tmp"
        new.write_text(self.commit)
        os.replace(new, ref)

    def _copy(self, blob: Path, pointer: Path) -> None:
        said = f"{self.cache} has no symbolic links: files are copied, and revisions share nothing"
        if said not in self.notes:
            self.notes.append(said)
        new = pointer.with_name(f"{pointer.name[:200]}.{os.getpid()}.tmp")
        shutil.copyfile(blob, new)
        os.replace(new, pointer)

    def _pointer(self, file: HubFile) -> Path:
        return self.snapshot / file.path


class FolderPlace:
    """A plain folder, with the notes `hf download --local-dir` keeps beside it: what came from where, and when."""

    def __init__(
        self, folder: Path, cache: Path, commit: str, *, replace: bool = False, look_only: bool = False
    ) -> None:
        self.top = self.snapshot = folder
        self.cache = cache
        self.commit, self.replace, self.look_only = commit, replace, look_only
        self.notes: list[str] = []
        self._downloads = folder / DOWNLOADS

    def has(self, file: HubFile) -> bool:
        """The file as it was noted, untouched since; else by its hash.

        HfbenchError for a file of another content that no download made, unless it may be replaced.
        """
        path = self._inside(file)
        try:
            status = os.stat(path)
        except OSError:
            return False
        etag, at = self._noted(file)
        untouched = bool(etag) and status.st_mtime <= at + 1
        if untouched and etag == file.etag and status.st_size == file.size:
            return True
        if status.st_size == file.size and _digest(path, file) == file.etag:
            if not self.look_only:
                self._note(file)
            return True
        if not untouched and not self.replace:
            raise HfbenchError(
                "is another file than the hub's, and no download made it",
                where=path,
                remedy="move it away, choose another --to, or give --replace",
            )
        return False

    def holds(self, file: HubFile) -> bool:
        """Only in its place."""
        return False

    def elsewhere(self, file: HubFile) -> Path | None:
        """In the cache."""
        return content_elsewhere(self.cache, file)

    def part(self, file: HubFile) -> tuple[Path, Path]:
        """Below the notes, so that nothing broken lies among the files."""
        return self._downloads / f"{file.etag}{PART}", self._downloads / f"{file.etag}{JOURNAL}"

    def lock(self, file: HubFile) -> Path:
        """Where stock clients keep it."""
        return self._downloads / f"{file.path}.lock"

    def publish(self, part: Path, file: HubFile) -> None:
        """By rename, with a note of what it is."""
        path = self._inside(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(part, path)
        self._note(file)

    def put(self, file: HubFile, like: HubFile) -> None:
        """A copy, where it is not there already."""
        if file.path == like.path:
            return
        path = self._inside(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name[:200]}.{os.getpid()}.tmp")
        shutil.copyfile(self._inside(like), new)
        os.replace(new, path)
        self._note(file)

    def _inside(self, file: HubFile) -> Path:
        """The path of a file; HfbenchError when a link on the way leads out of the folder."""
        path = self.snapshot / file.path
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.snapshot)):
            raise HfbenchError("a link leads out of the folder", where=path, remedy="remove it, or choose another --to")
        return path

    def _noted(self, file: HubFile) -> tuple[str, float]:
        """The ETag and the time that a download noted, empty and 0 without a note."""
        try:
            with open(self._downloads / f"{file.path}.metadata", encoding="ascii") as note:
                _, etag, at = note.read(4096).split("\n")[:3]
            return etag.strip(), float(at)
        except (OSError, ValueError):
            return "", 0.0

    def _note(self, file: HubFile) -> None:
        note = self._downloads / f"{file.path}.metadata"
        note.parent.mkdir(parents=True, exist_ok=True)
        new = note.with_name(f"{note.name[:200]}.{os.getpid()}.tmp")
        new.write_text(f"{self.commit}\n{file.etag}\n{time.time()}\n")
        os.replace(new, note)


def _sync(folder: Path) -> None:
    """Make renames within a folder last."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def free_bytes(folder: Path) -> int:
    """Room on the disk of a folder, or of what will hold it."""
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


def _digest(path: Path, file: HubFile) -> str:
    digest = new_hash(file)
    with open(path, "rb") as opened:
        while piece := opened.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
