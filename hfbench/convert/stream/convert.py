"""Moves all tensors of a plan into their files: checked, in parallel, in bounded memory, resumable."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hfbench.convert.formats.layout import FileLayout, row_bytes
from hfbench.convert.plan import Target
from hfbench.convert.stored import TensorSet
from hfbench.convert.stream.assemble import SCRATCH_BYTES
from hfbench.convert.stream.fingerprint import Extra, State, fingerprint, source_states
from hfbench.convert.stream.manifest import Working, boot_id, read_working, write_finished
from hfbench.convert.stream.partial import (
    allocated,
    claimed,
    emptied,
    is_complete,
    published,
    refuse_same,
    refuse_taken,
)
from hfbench.convert.stream.preflight import BASE_MEMORY, check_disk, check_memory
from hfbench.convert.stream.prescan import Finding, prescan, refuse
from hfbench.convert.stream.work import check_paths, in_order, pieces_of
from hfbench.convert.stream.write import BLOCK_BYTES, Landed, Writers, write_all
from hfbench.errors import FULL, HfbenchError
from hfbench.jobs.run import Run
from hfbench.models.values.crew import threads_here
from hfbench.units import show_bytes

PHASE = "convert"
"""The phase whose progress counts the bytes of tensors; `scan` and `check` come before it where they are needed."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a conversion wrote. `resumed_bytes` were there from a run that had stopped; `reused`: all of it was."""

    folder: Path
    tensors: int
    bytes: int
    seconds: float
    resumed_bytes: int
    reused: bool
    findings: tuple[Finding, ...]
    """What casts lost, and was allowed to."""


def convert(
    targets: Sequence[Target],
    sources: TensorSet,
    layouts: Sequence[FileLayout],
    folder: Path,
    run: Run,
    *,
    extra: Extra | None = None,
    allow: Collection[str] = (),
    threads: int | None = None,
    record: Mapping[str, object] | None = None,
) -> Written:
    """Write all files, then give the folder its name; killed and called again with the same, it goes on.

    Elements are cast where a target's dtype differs from its source's; what that would lose is refused unless its kind
    is in `allow`. `extra` are small files to go along, `record` is kept in the first line of the manifest.
    HfbenchError and UsageError before anything is written, or with what was written kept beside the folder.
    ValueError for a plan that is not whole.
    """
    folder = Path(os.path.abspath(folder))
    return _Conversion(
        targets, sources, layouts, folder, run, extra or {}, allow, threads or threads_here(), record
    ).made()


class _Conversion:
    def __init__(
        self,
        targets: Sequence[Target],
        sources: TensorSet,
        layouts: Sequence[FileLayout],
        folder: Path,
        run: Run,
        extra: Extra,
        allow: Collection[str],
        threads: int,
        record: Mapping[str, object] | None,
    ) -> None:
        self.targets, self.sources, self.layouts, self.folder = targets, sources, layouts, folder
        self.run, self.extra, self.allow = run, extra, allow
        self.threads = max(1, threads)
        self.record = dict(record or {})
        self.work = pieces_of(targets, layouts, sources)
        self.total = sum(each.bytes for each in self.work)
        self.landed: dict[int, Landed] = {}
        self.findings: tuple[Finding, ...] = ()

    def made(self) -> Written:
        began = time.perf_counter()
        check_paths([*(each.path for each in self.layouts), *self.extra])
        refuse_same(self.folder, self.sources.folder)
        states = source_states(self.targets, self.sources)
        plan = fingerprint(self.targets, self.layouts, self.extra, states, sorted(self.allow))
        if refuse_taken(self.folder, plan, self.layouts):
            return self.written(began, self.total, reused=True)
        check_memory(BASE_MEMORY + self.threads * (BLOCK_BYTES + SCRATCH_BYTES + 2 * self.widest()))
        with claimed(self.folder) as partial:
            if refuse_taken(self.folder, plan, self.layouts):  # somebody else's was finished while this one waited
                return self.written(began, self.total, reused=True)
            if is_complete(partial, plan, self.layouts):  # killed just before it got its name
                published(partial, self.folder)
                return self.written(began, self.total, reused=True)
            resumed = self.prepare(partial, plan)
            try:
                self.fill(partial, plan, resumed)
                self.finish(partial, plan, states)
            except OSError as error:
                raise self.told(error, self.kept(partial)) from error
            except BaseException:
                self.kept(partial)
                raise
        return self.written(began, resumed)

    def prepare(self, partial: Path, plan: str) -> int:
        """Find out what a run before has left, and ask for room for the rest; returns the bytes that are there."""
        header, landed = read_working(partial)
        if header.get("plan") == plan:
            self.landed = self.trusted(partial, header, landed)
        elif any(partial.iterdir()):
            self.run.log("another plan or other sources were under way there: beginning anew", level="warning")
            emptied(partial)
        if not self.landed:
            self.findings = prescan(self.targets, self.sources, self.run, threads=self.threads)
            refuse(self.findings, self.allow)
        else:
            self.findings = tuple(Finding(**each) for each in header.get("findings", ()))
        size = sum(each.size for each in self.layouts) + sum(map(_extra_bytes, self.extra.values()))
        check_disk(partial, max(0, size - allocated(partial)))
        resumed = sum(self.work[number].bytes for number in self.landed)
        if resumed:
            self.run.log(f"going on: {show_bytes(resumed)} of {show_bytes(self.total)} are there")
        return resumed

    def trusted(self, partial: Path, header: Mapping[str, object], landed: Iterable[Landed]) -> dict[int, Landed]:
        """What has landed and still is there. After a restart of the machine every piece is read again and compared."""
        sizes = {each.path: each.size for each in self.layouts}
        whole = {path for path, size in sizes.items() if _file_size(partial / path) == size}
        found = {
            each.number: each
            for each in landed
            if 0 <= each.number < len(self.work) and self.work[each.number].path in whole
        }
        if header.get("boot") == boot_id():
            return found
        total, done = sum(self.work[number].bytes for number in found), 0
        kept: dict[int, Landed] = {}
        for number, each in found.items():
            work = self.work[number]
            if _sha256(partial / work.path, work.piece.begin, work.bytes) == each.sha256:
                kept[number] = each
            done += work.bytes
            self.run.progress("check", done, total, "B")
        return kept

    def fill(self, partial: Path, plan: str, resumed: int) -> None:
        """Lay the files out and move the tensors that are not there yet."""
        header = {"plan": plan, "boot": boot_id(), "findings": [asdict(each) for each in self.findings]}
        working = Working(partial, header, self.landed.values())
        try:
            self.lay_out(partial)
            left = [each for each in in_order(self.work, self.sources, self.threads) if each.number not in self.landed]
            self.run.progress(PHASE, resumed, self.total, "B")
            with Writers(left, self.sources, partial, min(self.threads, max(1, len(left)))) as writers:
                try:
                    for landed in writers.results():
                        if landed:
                            self.add(landed, working)
                        done = resumed + sum(writers.moved)
                        if done < self.total:
                            self.run.progress(PHASE, done, self.total, "B")
                finally:
                    writers.end()
                    for landed in writers.leftover():
                        self.add(landed, working)
            self.run.progress(PHASE, self.total, self.total, "B")
        finally:
            working.close()

    def add(self, landed: Landed, working: Working) -> None:
        working.add(landed)
        self.landed[landed.number] = landed

    def lay_out(self, partial: Path) -> None:
        """Make every file with all that is not tensors, and the checksums of tensors that are there."""
        for layout in self.layouts:
            path = partial / layout.path
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            try:
                os.ftruncate(descriptor, layout.size)
                for at, data in layout.fixed:
                    write_all(descriptor, memoryview(data), at, path)
            finally:
                os.close(descriptor)
        for number, landed in self.landed.items():
            work = self.work[number]
            if work.piece.crc32_at:
                descriptor = os.open(partial / work.path, os.O_WRONLY | os.O_CLOEXEC)
                try:
                    for at in work.piece.crc32_at:
                        write_all(descriptor, memoryview(landed.crc32.to_bytes(4, "little")), at, partial / work.path)
                finally:
                    os.close(descriptor)

    def finish(self, partial: Path, plan: str, states: Sequence[State]) -> None:
        """Copy the small files, see that the sources are what they were, and give the folder its name."""
        files: dict[str, dict[str, object]] = {each.path: {"bytes": each.size} for each in self.layouts}
        for name, content in self.extra.items():
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, path)
            else:
                path.write_bytes(content)
            size = path.stat().st_size
            files[name] = {"bytes": size, "sha256": _sha256(path, 0, size)}
        if source_states(self.targets, self.sources) != states:
            found = "a file changed while it was converted; what was written is not used"
            raise HfbenchError(found, where=self.sources.folder, remedy="run it again when nothing writes there")
        header = {
            "plan": plan,
            "findings": [asdict(each) for each in self.findings],
            "allowed": sorted(self.allow),
            **self.record,
        }
        write_finished(partial, header, self.work, self.landed, files)
        published(partial, self.folder)

    def kept(self, partial: Path) -> str:
        """What became of the files, in words: they are kept when a tensor has landed."""
        if not self.landed:
            emptied(partial)
            return ""
        done = sum(self.work[number].bytes for number in self.landed)
        kept = f"{show_bytes(done)} of {show_bytes(self.total)} are kept in {partial}"
        self.run.log(f"{kept}: the same command goes on from there", level="warning")
        return kept

    def told(self, error: OSError, kept: str) -> HfbenchError:
        """The sentence of a disk that takes no more, or not at all."""
        if error.errno in FULL:
            remedy = "free space and run the same command again" + (f", or delete it: {kept}" if kept else "")
            return HfbenchError("the disk is full", where=self.folder, remedy=remedy)
        place = error.filename or self.folder
        return HfbenchError(f"cannot be written ({error.strerror})", where=place, remedy="choose another folder")

    def widest(self) -> int:
        """Bytes of the widest row, which is moved at once."""
        return max((row_bytes(each.spec) for each in self.targets), default=0)

    def written(self, began: float, resumed: int, *, reused: bool = False) -> Written:
        return Written(
            folder=self.folder,
            tensors=len(self.targets),
            bytes=self.total,
            seconds=time.perf_counter() - began,
            resumed_bytes=resumed,
            reused=reused,
            findings=self.findings,
        )


def _extra_bytes(content: Path | bytes) -> int:
    return content.stat().st_size if isinstance(content, Path) else len(content)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _sha256(path: Path, begin: int, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        file.seek(begin)
        while size and (block := file.read(min(size, BLOCK_BYTES))):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()
