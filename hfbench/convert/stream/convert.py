"""Moves all tensors of a plan into their files: checked, in parallel, in bounded memory, resumable."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hfbench.convert.formats.layout import FileLayout, row_bytes
from hfbench.convert.plan import Target
from hfbench.convert.stored import TensorSet
from hfbench.convert.stream.assemble import SCRATCH_BYTES
from hfbench.convert.stream.fingerprint import Extra, State, fingerprint, source_states
from hfbench.convert.stream.laid_out import lay_out
from hfbench.convert.stream.manifest import Working, boot_id, read_working, write_finished
from hfbench.convert.stream.outputs import BLOCK_BYTES
from hfbench.convert.stream.partial import (
    allocated,
    claimed,
    emptied,
    is_complete,
    published,
    refuse_same,
    refuse_strangers,
    refuse_taken,
    synced,
)
from hfbench.convert.stream.preflight import BASE_MEMORY, check_disk, check_memory
from hfbench.convert.stream.prescan import Finding, prescan, refuse
from hfbench.convert.stream.trusted import sha256_of, trusted
from hfbench.convert.stream.work import check_paths, in_order, pieces_of
from hfbench.convert.stream.write import Landed, Writers
from hfbench.errors import FULL, HfbenchError
from hfbench.jobs.run import Run
from hfbench.models.values.crew import threads_here
from hfbench.units import show_bytes

THREADS_A_CORE = 3
"""One hashes while others wait for the disk."""

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
    return _Conversion(
        targets=targets,
        sources=sources,
        layouts=layouts,
        folder=Path(os.path.abspath(folder)),
        run=run,
        extra=extra or {},
        allow=allow,
        threads=threads or THREADS_A_CORE * threads_here(),
        record=record or {},
    ).made()


@dataclass(kw_only=True)
class _Conversion:
    targets: Sequence[Target]
    sources: TensorSet
    layouts: Sequence[FileLayout]
    folder: Path
    run: Run
    extra: Extra
    allow: Collection[str]
    threads: int
    record: Mapping[str, object]
    landed: dict[int, Landed] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        self.work = pieces_of(self.targets, self.layouts, self.sources)
        self.total = sum(each.bytes for each in self.work)
        self.files = {*(each.path for each in self.layouts), *self.extra}
        """All that will be there, by paths in the folder."""

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
                refuse_strangers(partial, self.files)
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
            refuse_strangers(partial, self.files)
            self.landed = trusted(partial, header, landed, self.work, self.layouts, self.run)
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

    def fill(self, partial: Path, plan: str, resumed: int) -> None:
        """Lay the files out and move the tensors that are not there yet."""
        header = {"plan": plan, "boot": boot_id(), "findings": [asdict(each) for each in self.findings]}
        working = Working(partial, header, self.landed.values())
        try:
            lay_out(partial, self.layouts, self.work, self.landed)
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
            files[name] = {"bytes": size, "sha256": sha256_of(path, 0, size)}
        if source_states(self.targets, self.sources) != states:
            found = "a file changed while it was converted; what was written is not used"
            raise HfbenchError(found, where=self.sources.folder, remedy="run it again when nothing writes there")
        header = {
            "plan": plan,
            "findings": [asdict(each) for each in self.findings],
            "allowed": sorted(self.allow),
            **self.record,
        }
        refuse_strangers(partial, files)
        for name in files:
            synced(partial / name)
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
