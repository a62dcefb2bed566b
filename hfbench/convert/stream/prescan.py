"""What casts would lose, counted before anything is written: NaN, infinities, overflow, underflow."""

from __future__ import annotations

import queue
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.formats.layout import bytes_of
from hfbench.convert.plan import Target
from hfbench.convert.stored import Scaled, Stored, TensorSet
from hfbench.convert.stream.assemble import Assembly, Sources
from hfbench.convert.stream.cast import losses
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run
from hfbench.models.problem import counted, quoted
from hfbench.models.values.crew import BLOCK
from hfbench.models.values.tally import Measure, Tally

KINDS = ("nan", "inf", "overflow", "underflow")
"""What may be found, and allowed by name."""

MEANINGS = {
    "nan": "NaN",
    "inf": "infinities",
    "overflow": "too large for {dtype}: they would become infinite",
    "underflow": "too small for {dtype}: they would become zero",
}

SHOWN = 3
"""Tensors named in a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Values of one source tensor that a cast would lose, or that are wrong already."""

    tensor: str
    dtype: str
    """What it is cast to."""
    kind: str
    """One of KINDS."""
    values: int
    absmax: float | None
    """The largest finite magnitude of the tensor; None where it has none, or was not read."""
    decoded: bool = False
    """True for scales by which the tensor is decoded, False for its own values."""


def casts(targets: Iterable[Target], sources: TensorSet) -> list[tuple[TensorSpec, str]]:
    """The source tensors that are cast, each with the dtype it is cast to."""
    found: dict[tuple[str, str], TensorSpec] = {}
    for target in targets:
        for name in target.sources:
            spec = sources.tensors[name].spec
            if spec.dtype != target.spec.dtype:
                found[name, target.spec.dtype] = spec
    return [(spec, dtype) for (_, dtype), spec in found.items()]


def prescan(targets: Sequence[Target], sources: TensorSet, run: Run, *, threads: int = 2) -> tuple[Finding, ...]:
    """What casts and decoding would lose, by tensor; nothing is read of what is neither cast nor decoded.

    HfbenchError when a file gives out. Told as the phase `scan`.
    """
    work = casts(targets, sources)
    total = sum(bytes_of(spec) for spec, _ in work)
    done = 0
    tallies: dict[int, Tally] = {}
    decoding = _decoding_losses(targets, sources)
    if not work:
        return decoding
    run.progress("scan", 0, total, "B")
    with _Scanners(work, sources, threads) as scanners:
        for number, tally in scanners.results():
            tallies[number] = tally
            done += bytes_of(work[number][0])
            run.progress("scan", done, total, "B")
    casting = (_findings(spec, dtype, tallies[number]) for number, (spec, dtype) in enumerate(work))
    return (*decoding, *chain.from_iterable(casting))


def refuse(findings: Sequence[Finding], allow: Collection[str]) -> None:
    """HfbenchError naming tensors and counts when something was found that is not allowed."""
    for kind in KINDS:
        found = [each for each in findings if each.kind == kind and kind not in allow]
        if not found:
            continue
        worst = sorted(found, key=lambda each: -each.values)[:SHOWN]
        named = ", ".join(f"{quoted(each.tensor)} ({each.values:,})" for each in worst)
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        meaning = MEANINGS[kind].format(dtype=found[0].dtype)
        what = f"{counted(sum(each.values for each in found), 'value')} of {counted(len(found), 'tensor')}"
        others = sorted({each.kind for each in findings} - {kind, *allow}, key=KINDS.index)
        beside = f", beside {', '.join(others)}" if others else ""
        decoded = any(each.decoded for each in found)
        remedy = f"{'fetch the model again' if decoded else 'keep the dtype'}, or allow it with --allow {kind}"
        where = "decode" if decoded else "cast"
        raise HfbenchError(f"{what} are {meaning}: {named}{more}{beside}", where=where, remedy=remedy)


def _decoding_losses(targets: Iterable[Target], sources: TensorSet) -> tuple[Finding, ...]:
    """Scales of decoded sources that are no finite numbers."""
    names = dict.fromkeys(name for target in targets for name in target.sources)
    scaled = [each for name in names if isinstance(each := sources.tensors[name], Scaled)]
    return tuple(
        Finding(tensor=each.scales.spec.name, dtype="BF16", kind=kind, values=values, absmax=None, decoded=True)
        for each in scaled
        for kind, values in each.wrong_scales().items()
        if values
    )


def _findings(spec: TensorSpec, dtype: str, tally: Tally) -> list[Finding]:
    code = losses(spec.dtype, dtype)
    absmax = code.value(tally.most) if tally.most is not None else None
    counts = {"nan": tally.nan, "inf": tally.inf, "overflow": tally.overflows, "underflow": tally.vanishes}
    return [
        Finding(tensor=spec.name, dtype=dtype, kind=kind, values=values, absmax=absmax)
        for kind, values in counts.items()
        if values
    ]


class _Scanners:
    """Threads that count the values of one source tensor after another."""

    def __init__(self, work: Sequence[tuple[TensorSpec, str]], sources: TensorSet, threads: int) -> None:
        self.sources = sources
        self.jobs: queue.SimpleQueue[tuple[int, TensorSpec, str]] = queue.SimpleQueue()
        for number, (spec, dtype) in enumerate(work):
            self.jobs.put((number, spec, dtype))
        self.left = len(work)
        self.news: queue.SimpleQueue[tuple[int, Tally] | BaseException] = queue.SimpleQueue()
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(max(1, threads))]

    def __enter__(self) -> _Scanners:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def results(self) -> Iterable[tuple[int, Tally]]:
        for _ in range(self.left):
            found = self.news.get()
            if isinstance(found, BaseException):
                raise found
            yield found

    def work(self) -> None:
        try:
            with Sources(self.sources) as sources:
                measure = Measure(BLOCK)
                while not self.stop.is_set():
                    number, spec, dtype = self.jobs.get_nowait()
                    self.news.put((number, self.count(spec, dtype, sources, measure)))
        except queue.Empty:
            return
        except BaseException as error:
            self.news.put(error)

    def count(self, spec: TensorSpec, dtype: str, sources: Sources, measure: Measure) -> Tally:
        """The tally of a tensor, read in blocks."""
        code, found = losses(spec.dtype, dtype), Tally()
        for block in _blocks(self.sources.tensors, spec, sources):
            for begin in range(0, len(block), BLOCK):
                size = min(BLOCK, len(block) - begin)
                measure.raw[:size] = block[begin : begin + size]
                found.add(measure.tally(size, code))
            if self.stop.is_set():
                break
        return found


def _blocks(tensors: Mapping[str, object], spec: TensorSpec, sources: Sources) -> Iterable[memoryview]:
    """A source tensor's bytes in stretches."""
    np, source = sources.np, sources.set.tensors[spec.name]
    if isinstance(source, Stored):
        left, at = bytes_of(spec), source.begin
        while left:
            room = sources.room(min(left, BLOCK))
            sources.fill(room, source.file, at)
            yield np.frombuffer(room, "u1")
            left, at = left - len(room), at + len(room)
        return
    whole = _whole(spec)
    assembly = Assembly(whole, sources.set.tensors)
    step = max(1, BLOCK // max(1, assembly.row_bytes))
    for row in range(0, spec.rows, step):
        end = min(row + step, spec.rows)
        block = bytearray((end - row) * assembly.row_bytes)
        assembly.fill(memoryview(block), row, end, sources)
        yield np.frombuffer(block, "u1")


def _whole(spec: TensorSpec) -> Target:
    box = Box(0, spec.rows, 0, spec.columns)
    return Target(spec, "", (Copy(spec.name, box, spec.name, box),), "")
