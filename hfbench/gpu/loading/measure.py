"""bench.load's work: every loader in turn, cold and warm, until the medians say enough."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.gpu.devices import Chosen, choose_device
from hfbench.gpu.loading.files import WeightFiles, find_files
from hfbench.gpu.loading.loaders import LOADERS, PLAIN, Loader, find_loaders
from hfbench.gpu.loading.page_cache import COLD, WARM, drop, resident, warm
from hfbench.gpu.loading.processes import LoaderFailed, LoaderProcess
from hfbench.gpu.loading.result import LoaderRow, LoadResult, Peaks, fastest, speed, verdicts
from hfbench.gpu.loading.tensors import file_digest
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.timing.formulas import Formula
from hfbench.gpu.timing.machine import Watch
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.stopping import Budget, MedianInterval, Stop
from hfbench.models.problem import counted
from hfbench.models.reference import Location, resolve
from hfbench.text import did_you_mean
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LOAD = Formula(
    id="load=t[last byte on the device]-t[asked]",
    unit="s",
    meaning="From asking a loader for all files to every byte of every tensor being on the device.",
)
LEAST_ROUNDS = 6
"""Fewer samples have no interval."""


class Request(Protocol):
    """What to measure; the action bench.load declares these fields with their help and bounds."""

    @property
    def model(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def loaders(self) -> tuple[str, ...]: ...
    @property
    def cache(self) -> str: ...
    @property
    def rounds(self) -> int: ...
    @property
    def budget(self) -> float: ...
    @property
    def ci(self) -> float: ...
    @property
    def limit(self) -> float: ...


@dataclass
class Subject:
    """A loader under measurement: its process, its samples by state of the cache, and what was seen of it."""

    loader: Loader
    files: tuple[Path, ...] = ()
    process: LoaderProcess | None = None
    reason: str = ""
    verified: str = ""
    first: Mapping[str, Any] = field(default_factory=dict)
    samples: dict[str, Samples] = field(default_factory=dict)
    peaks: list[Mapping[str, Any]] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)
    """Shares of the files that were cached after a cold load."""

    @property
    def alive(self) -> bool:
        """It can be asked once more."""
        return self.process is not None and not self.reason


def measure(request: Request, run: Run) -> LoadResult:
    """Verify every loader once, then load in interleaved rounds; UsageError for a name that is none of a loader's.

    MissingError when no loader can run here; a loader that fails is a row with its reason.
    """
    location = resolve(request.model)
    chosen = choose_device(request.device)
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # so that cuda:N is the N of the driver and the leases
    weights = find_files(location.folder)
    taken = _Measurement(request, run, weights, chosen.name, _wanted(request.loaders))
    with ExitStack() as stack:
        taken.start(stack)
        taken.verify()
        if not any(each.alive for each in taken.subjects if each.loader.id != PLAIN):
            raise _none_left(taken.subjects, location)
        taken.run_to_the_stop()
    return _result(taken, location.folder, chosen)


def _wanted(names: Sequence[str]) -> tuple[Loader, ...]:
    if set(names) == {PLAIN}:
        raise UsageError(f"{PLAIN} is what others are compared with", where="loaders", remedy="name another beside it")
    try:
        return find_loaders(names)
    except KeyError as error:
        known = [each.id for each in LOADERS]
        hint = did_you_mean(str(error.args[0]), known) or f"known: {', '.join(known)}"
        raise UsageError(f"{error.args[0]!r} is no loader", where="loaders", remedy=hint) from None


def _none_left(subjects: Sequence[Subject], location: Location) -> HfbenchError:
    """Why there is nothing to measure: loaders that ran could not load the files, or none can run here."""
    ran = [each for each in subjects if each.process is not None and each.reason]
    why = "; ".join(f"{each.loader.id}: {each.reason}" for each in ran or subjects if each.reason)
    if ran:
        return HfbenchError(
            f"no loader can load it: {why}",
            where=location.folder,
            remedy=f"hfbench check {location.given} tells what is wrong with the files",
        )
    return MissingError(f"no loader can run here: {why}", where=location.folder, remedy="install safetensors and torch")


class _Measurement:
    """All rounds of one measurement and what they left."""

    def __init__(
        self, request: Request, run: Run, weights: WeightFiles, device: str, loaders: Sequence[Loader]
    ) -> None:
        self.request, self.run, self.weights, self.device = request, run, weights, device
        self.states = ("cold", "warm") if request.cache == "both" else (request.cache,)
        self.subjects = [Subject(loader=each, files=weights.of(each.format)) for each in loaders]
        self.why_not: dict[str, str] = {}
        """States of the cache that cannot be had, and why."""
        self.unchecked = ""
        self.rule = MedianInterval(width=request.ci, budget=request.budget, most=request.rounds, least=LEAST_ROUNDS)
        self.stop, self.seconds, self.rounds = Stop.BUDGET_SPENT, 0.0, 0
        self.budget = Budget(request.budget)
        self.watch = Watch()

    def start(self, stack: ExitStack) -> None:
        """Start the processes of those that can run, one after the other."""
        formats = self.weights.formats
        for number, subject in enumerate(self.subjects):
            self.run.progress("start", number, len(self.subjects))
            subject.reason = subject.loader.refusal(formats, self.device)
            if subject.reason:
                continue
            process = stack.enter_context(LoaderProcess(subject.loader.id, limit=self.request.limit))
            try:
                process.ready()
                subject.process = process
            except LoaderFailed as error:
                subject.reason = error.found
        self.run.progress("start", len(self.subjects), len(self.subjects))

    def verify(self) -> None:
        """Load once with each, unmeasured, and compare all bytes with those of the files."""
        expected: dict[str, str] = {}
        if self.weights.safetensors:
            expected["safetensors"] = file_digest(list(self.weights.safetensors))
        for number, subject in enumerate(self.subjects):
            self.run.progress("verify", number, len(self.subjects))
            if not subject.alive or subject.loader.id == PLAIN:
                continue
            told = self._load(subject, verify=True)
            if told is None:
                continue
            subject.first = told
            format = subject.loader.format
            truth = expected.setdefault(format, str(told["digest"]))
            if told["digest"] != truth:
                subject.reason = "it gives other bytes than the file holds"
            elif format == "safetensors":
                subject.verified = "every byte equals the file's"
            elif truth == expected.get("safetensors"):
                subject.verified = "every byte equals that of the safetensors files"
            else:
                subject.verified = "every byte equals that of the other way to unpickle it"
        self.run.progress("verify", len(self.subjects), len(self.subjects))

    def run_to_the_stop(self) -> None:
        """Rounds in which every loader has its turn in each state, beginning with another one each time."""
        self.watch = Watch()
        self.budget, stop = Budget(self.request.budget), None
        self.run.progress("measure", 0.0, 1.0)
        while stop is None:
            before = self.seconds
            turn = self.rounds % len(self.subjects)
            for subject in [*self.subjects[turn:], *self.subjects[:turn]]:
                for state in self.states:
                    self._once(subject, state)
            self.rounds += 1
            self.seconds = self.budget.elapsed
            watched = self.watched()
            if not watched:
                break
            stop = self.rule.verdict(watched, self.seconds, self.seconds - before)
            self.run.progress("measure", 1.0 if stop else min(self.rule.share(watched, self.seconds), 0.999), 1.0)
        self.stop = stop or Stop.BUDGET_SPENT
        self.run.log(f"stopped after {counted(self.rounds, 'round')}: {self.stop}")

    def watched(self) -> list[Samples]:
        """The samples of all that still run."""
        return [samples for each in self.subjects if each.alive for samples in each.samples.values()]

    def _once(self, subject: Subject, state: str) -> None:
        if not subject.alive or state in self.why_not or not self._prepared(subject, state):
            return
        told = self._load(subject)
        if told is None:
            return
        name = f"{subject.loader.id} {state}"
        subject.samples.setdefault(state, Samples(name, LOAD)).add(told["seconds"])
        subject.peaks.append(told)
        if state == "cold" and not isinstance(left := resident(subject.files), Unavailable):
            subject.kept.append(left)
        self.run.metric(f"load.{subject.loader.id}.{state}", told["seconds"], "s")

    def _prepared(self, subject: Subject, state: str) -> bool:
        """Bring the page cache into a state and look whether it is; a state that cannot be had is never measured."""
        try:
            held = drop(subject.files) if state == "cold" else warm(subject.files)
        except OSError as error:
            self.why_not[state] = f"the page cache cannot be looked at: {error.strerror}"
            return False
        if isinstance(held, Unavailable):
            self.unchecked = held.reason
            return True
        if state == "cold" and held > COLD:
            kind = (
                f"a {self.weights.filesystem} disk keeps its files in memory"
                if self.weights.in_memory
                else ("another process may have them mapped")
            )
            self.why_not[state] = f"{held:.0%} of the bytes stay in the page cache: {kind}"
        elif state == "warm" and held < WARM:
            size = show_bytes(sum(each.stat().st_size for each in subject.files))
            self.why_not[state] = (
                f"only {held:.0%} of {size} stay in the page cache: this machine has too little memory"
            )
        return state not in self.why_not

    def _load(self, subject: Subject, *, verify: bool = False) -> Mapping[str, Any] | None:
        """One load; what a loader cannot do becomes its reason."""
        assert subject.process is not None
        try:
            return subject.process.load(subject.files, self.device, verify=verify)
        except LoaderFailed as error:
            subject.reason = error.found
            self.run.log(f"{subject.loader.id}: {error.found}", level="warning")
            return None


def _result(taken: _Measurement, folder: Path, chosen: Chosen) -> LoadResult:
    plain = next(each for each in taken.subjects if each.loader.id == PLAIN)
    rows = tuple(_row(each, plain, taken) for each in taken.subjects)
    company = taken.watch.company()
    notes = [
        *filter(None, [chosen.why]),
        "cold is the page cache of this kernel: a host, a RAID controller or the disk itself may hold the bytes still",
        *(f"{state} was not measured: {why}" for state, why in taken.why_not.items()),
        *([f"whether the cache was cold could not be checked: {taken.unchecked}"] if taken.unchecked else []),
    ]
    if taken.stop is Stop.BUDGET_SPENT and taken.watched():
        notes.append(taken.budget.note(counted(taken.rounds, "round"), cold=False))
    if taken.device == "cpu":
        notes.append("on the CPU a mapped tensor stays in the page cache: its bytes were touched, not copied")
    told = verdicts(taken.watched(), rule=taken.rule, stop=taken.stop, company=company) if taken.watched() else []
    return LoadResult(
        model=taken.request.model,
        folder=str(folder),
        filesystem=taken.weights.filesystem,
        device=taken.device,
        device_name=chosen.gpu.name if chosen.gpu else platform.machine(),
        files=len(taken.weights.safetensors or taken.weights.pickles),
        bytes=taken.weights.bytes,
        rounds=taken.rounds,
        measured_seconds=taken.seconds,
        stop_reason=str(taken.stop),
        ci=taken.request.ci,
        budget=taken.request.budget,
        rows=rows,
        fastest={state: found for state in taken.states if (found := fastest(rows, state)) is not None},
        verdicts=told,
        machine=company,
        notes=notes,
    )


def _row(subject: Subject, plain: Subject, taken: _Measurement) -> LoaderRow:
    loader, size = subject.loader, sum(each.stat().st_size for each in subject.files)

    def of(state: str) -> Any:
        peer = plain.samples.get(state) if plain.files == subject.files else None
        samples = subject.samples.get(state)
        return speed(samples, size, peer) if samples and not subject.reason else None

    return LoaderRow(
        loader=loader.id,
        summary=loader.summary,
        format=loader.format,
        safe=loader.safe and bool(subject.verified),
        why=loader.why,
        reason=subject.reason,
        bytes=size,
        tensors=int(subject.first.get("tensors", 0)),
        verified=subject.verified,
        cold=of("cold"),
        warm=of("warm"),
        cached_after_cold=max(subject.kept, default=None),
        peaks=_peaks(subject.peaks, taken.device),
    )


def _peaks(told: Sequence[Mapping[str, Any]], device: str) -> Peaks | None:
    if not told:
        return None
    most = max(told, key=lambda each: each["rss_peak"] or 0)
    cuda = [each["cuda_peak"] for each in told if each["cuda_peak"] is not None]
    return Peaks(
        rss_bytes=most["rss_peak"],
        rss_before_bytes=most["rss_before"],
        cuda_reserved_bytes=max(cuda, default=None),
        reason="" if cuda else f"no CUDA memory: the run was on {device}",
    )
