"""Opens a model on a hub without its weights: small files whole, of weights the headers, all of them checked.

What it makes is laid out as a cache is: `refs/REVISION` names a commit, `snapshots/COMMIT` is a folder that every
reader of models takes, with a mark that says what is not in it. A commit never changes, so that opening a model again
asks for one commit id, and fetches of a new one only the files that differ.
"""

from __future__ import annotations

import hashlib
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hfbench.hub.client import HubClient
from hfbench.hub.facts import HubFile, RepoInfo
from hfbench.hub.headers import header_of
from hfbench.hub.refusals import HubError, too_slow
from hfbench.hub.selection import Selection, select
from hfbench.hub.shadows import forget_older, fresh_folder, point, sweep
from hfbench.models.reference import DEFAULT_REVISION, cached_name
from hfbench.models.remote_mark import RemoteFile, RemoteMark, read_mark, write_mark
from hfbench.paths import remote_root

CREW = 8
"""Files that are fetched at once."""
FILE_TIME = 120.0
"""Seconds for one file; a header or a tokenizer takes a few even over a slow line."""
OPEN_TIME = 900.0
"""Seconds for all of them."""
MOST_BYTES = 512 << 20
"""Bytes fetched for one model."""

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that was opened. `fetched` bytes of `files` are what it cost this time; `reused` files were here."""

    mark: RemoteMark
    folder: Path
    info: RepoInfo
    fetched: int
    files: int
    reused: int
    notes: tuple[str, ...]


def open_remote(
    client: HubClient, repo: str, revision: str = DEFAULT_REVISION, *, tell: Tell = lambda done, total: None
) -> Opened:
    """The folder of a model at a revision, made or brought up to date. HubError and its kinds.

    `tell` is told how many files are there and how many there will be.
    """
    info = client.info(repo, revision)
    home = remote_root() / client.endpoint.name / cached_name(repo)
    folder = home / "snapshots" / info.commit
    mark, chosen, made = read_mark(folder), None, None
    if mark is None or mark.url != client.endpoint.url:
        sweep(home)
        chosen = select(client.files(repo, info.commit), client.asked(repo, revision))
        made = _Opening(client, repo, revision, info.commit, home, tell)
        mark = made.into(folder, chosen)
    point(home / "refs" / revision, info.commit)
    forget_older(home, folder)
    return Opened(
        mark=mark,
        folder=folder,
        info=info,
        fetched=made.fetched if made else 0,
        files=made.files if made else 0,
        reused=made.reused if made else 0,
        notes=chosen.notes if chosen else (),
    )


class _Opening:
    """One commit on its way into a folder."""

    def __init__(self, client: HubClient, repo: str, revision: str, commit: str, home: Path, tell: Tell) -> None:
        self.client, self.repo, self.revision, self.commit = client, repo, revision, commit
        self.home, self.tell = home, tell
        self.fetched = self.files = self.reused = 0
        self._counting = threading.Lock()

    def into(self, folder: Path, chosen: Selection) -> RemoteMark:
        """Fetch what was chosen and let it appear as a whole."""
        before = self._before()
        with fresh_folder(self.home / "snapshots") as fresh:
            wanted = [(file, False) for file in chosen.whole] + [(file, True) for file in chosen.headers]
            self._crew(fresh, wanted, before)
            mark = self._mark(chosen)
            write_mark(fresh, mark)
            if read_mark(folder) is not None and read_mark(folder) != mark:
                shutil.rmtree(folder, ignore_errors=True)  # of another hub under the same name
            try:
                fresh.rename(folder)
            except OSError:
                if read_mark(folder) is None:  # somebody who opened it at the same time came first, else
                    raise
        return mark

    def _mark(self, chosen: Selection) -> RemoteMark:
        told = {file.path: RemoteFile(file.size, "whole", file.etag) for file in chosen.whole}
        told |= {file.path: RemoteFile(file.size, "header", file.etag) for file in chosen.headers}
        told |= {file.path: RemoteFile(file.size, "nothing", file.etag) for file in chosen.left}
        endpoint = self.client.endpoint
        return RemoteMark(
            reference=endpoint.reference(self.repo, self.revision),
            endpoint=endpoint.name,
            url=endpoint.url,
            repo=self.repo,
            revision=self.revision,
            commit=self.commit,
            files=dict(sorted(told.items())),
        )

    def _before(self) -> dict[tuple[str, str], Path]:
        """Files of other commits that were opened, by content and by how much of it is there."""
        found = dict[tuple[str, str], Path]()
        for folder in (self.home / "snapshots").glob("[0-9a-f]*"):
            if (mark := read_mark(folder)) is not None and mark.url == self.client.endpoint.url:
                for name, file in mark.files.items():
                    if file.held != "nothing" and file.etag:
                        found[file.etag, file.held] = folder / name
        return found

    def _crew(self, fresh: Path, wanted: list[tuple[HubFile, bool]], before: dict[tuple[str, str], Path]) -> None:
        """Fetch all files by a few daemon threads: none can hold the process when it is stopped."""
        waiting: queue.SimpleQueue[tuple[HubFile, bool]] = queue.SimpleQueue()
        news: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        stop = threading.Event()
        for each in wanted:
            waiting.put(each)

        def work() -> None:
            while not stop.is_set():
                try:
                    file, header = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    self._place(fresh, file, header, before)
                    news.put(None)
                except BaseException as error:
                    news.put(error)
                    return

        for _ in range(min(CREW, len(wanted))):
            threading.Thread(target=work, daemon=True).start()
        deadline = time.monotonic() + OPEN_TIME
        try:
            for done in range(len(wanted)):
                self.tell(done, len(wanted))
                try:
                    error = news.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    asked = self.client.asked(self.repo, self.revision)
                    raise too_slow(f"its small files and headers took longer than {OPEN_TIME:g} s", asked) from None
                if error is not None:
                    raise error
            self.tell(len(wanted), len(wanted))
        finally:
            stop.set()

    def _place(self, fresh: Path, file: HubFile, header: bool, before: dict[tuple[str, str], Path]) -> None:
        """One file at its place: linked from a commit that has the same content, else fetched."""
        path = fresh / file.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            known = before.get((file.etag, "header" if header else "whole"))
            if known is not None and _linked(known, path):
                with self._counting:
                    self.reused += 1
                return
            content = self._header(file) if header else self._whole(file)
            path.write_bytes(content)
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            found = f"{file.path!r} is a file and a folder at once"
            raise HubError(found, where=self.client.asked(self.repo, self.revision).where) from None
        with self._counting:
            self.files += 1

    def _whole(self, file: HubFile) -> bytes:
        content = self._fetch(file, 0, None, file.size)
        self._refuse_other(file, content)
        return content

    def _header(self, file: HubFile) -> bytes:
        return header_of(file, lambda start, end: self._fetch(file, start, end, end - start))

    def _fetch(self, file: HubFile, start: int, end: int | None, most: int) -> bytes:
        """Bytes of a file, all that were asked for. Tried again where the line broke."""

        def fetch() -> bytes:
            with self.client.read_file(self.repo, self.commit, file.path, start=start, end=end) as stream:
                if stream.total is not None and stream.total != file.size:
                    raise self._refusal(file, f"has {stream.total:,} bytes, and the list of files says {file.size:,}")
                alike = len(stream.etag) == len(
                    file.etag
                )  # another length is another scheme, of which nothing is known
                if alike and stream.etag != file.etag:
                    raise self._refusal(file, "is another file than the list of files says")
                if stream.commit not in ("", self.commit):
                    raise self._refusal(file, f"comes from another commit, {stream.commit[:12]}")
                skip = start - stream.start  # a hub without ranges sends the file from its first byte
                found = b"".join(stream.chunks(skip + most, seconds=FILE_TIME))[skip:]
            if len(found) != most:
                raise self._refusal(file, f"ends after {start + len(found):,} of {file.size:,} bytes")
            self._count(len(found) + skip)
            return found

        return self.client.tried(fetch)

    def _count(self, bytes: int) -> None:
        with self._counting:
            self.fetched += bytes
            if self.fetched <= MOST_BYTES:
                return
        where = self.client.asked(self.repo, self.revision).where
        raise HubError(f"has more than {MOST_BYTES >> 20} MiB of small files and headers", where=where)

    def _refuse_other(self, file: HubFile, content: bytes) -> None:
        """HubError for content that is not what its hash says."""
        if file.sha256:
            right = hashlib.sha256(content).hexdigest() == file.sha256
        elif file.git_sha1:
            head = f"blob {len(content)}\0".encode()
            right = hashlib.sha1(head + content, usedforsecurity=False).hexdigest() == file.git_sha1
        else:
            return
        if not right:
            raise self._refusal(file, "is not what its hash says")

    def _refusal(self, file: HubFile, found: str) -> HubError:
        where = self.client.asked(self.repo, self.revision, file.path).where
        return HubError(found, where=where, remedy="try again; if it stays so, the hub or a proxy is broken")


def _linked(known: Path, path: Path) -> bool:
    try:
        os.link(known, path)
    except OSError:
        return False
    return True
