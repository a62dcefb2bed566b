"""bench.modes' work: several ways of executing one model in turns, so that a neighbour slows them all alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hfbench.errors import HfbenchError, Interrupted, UsageError
from hfbench.gpu.decoding import Decoder, Iteration
from hfbench.gpu.devices import choose_device
from hfbench.gpu.generate import dtype_of, prepared, prompts_for
from hfbench.gpu.generate_model import Loaded, translated
from hfbench.gpu.generate_modes import ENGINE, Engines, Prepared, refuse_mode
from hfbench.gpu.generate_open import Opened, open_model
from hfbench.gpu.generate_request import Setting
from hfbench.gpu.modes_cost import RoundCost, cost_words
from hfbench.gpu.modes_result import ModeRow, ModesResult, shown_mode
from hfbench.gpu.prompts import read_prompt
from hfbench.gpu.timing import formulas
from hfbench.gpu.timing.machine import Watch
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import Interval, median_interval
from hfbench.gpu.timing.stopping import Budget, MedianInterval, Stop
from hfbench.gpu.timing.verdicts import judge
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

EAGER = "eager"


class Request(Setting, Protocol):
    """Several modes to measure; the action bench.modes declares these fields."""

    @property
    def modes(self) -> tuple[str, ...]: ...


@dataclass
class _Subject:
    """One mode under measurement, or why it is not."""

    mode: str
    prepared: Prepared | None = None
    reason: str = ""
    finite: bool = True
    ttft: Samples = field(default_factory=lambda: Samples("ttft", formulas.TTFT))
    tpot: Samples = field(default_factory=lambda: Samples("tpot", formulas.TPOT))
    ratio: Samples = field(init=False)

    def __post_init__(self) -> None:
        self.ratio = Samples(f"{shown_mode(self.mode)} to eager", formulas.RATIO)


def measure_modes(request: Request, run: Run, engines: Engines) -> ModesResult:
    """Verify every mode against eager, then measure all in turns; eager is among them unasked.

    UsageError for shapes an engine was not built for and for engines of different dtypes; a mode that cannot run here
    is a row with its reason.
    """
    modes = tuple(dict.fromkeys((EAGER, *request.modes)))
    if modes == (EAGER,):
        raise UsageError("there is nothing to compare eager with", where="modes", remedy="name another mode")
    text = read_prompt(request.prompt_text, request.prompt_file)
    chosen = choose_device(request.device)
    dtype = _one_dtype(modes, request, engines, known_prompt=not text)
    subjects = [_Subject(mode) for mode in modes]
    for subject in subjects:
        with _reasons(subject):
            refuse_mode(subject.mode, on_gpu=chosen.gpu is not None)
    opened = open_model(request.model, chosen.gpu, run, threads=request.threads, with_text=bool(text))
    prompts = prompts_for(request, opened, text)
    loaded = opened.load(run, dtype=dtype, attention=request.attention)
    taken = _Measurement(request, run, loaded, subjects, prompts)
    taken.prepare(engines)
    taken.warm_up()
    taken.run_to_the_stop()
    return taken.result(opened, why=chosen.why)


def verdict_word(interval: Interval | None, *, within: float) -> str:
    """What an interval of a ratio to eager says: `faster`, `slower`, `same` within a share, or `undecided`."""
    if interval is None:
        return "undecided"
    if interval.high < 1 and interval.low < 1 - within:
        return "faster"
    if interval.low > 1 and interval.high > 1 + within:
        return "slower"
    return "same" if 1 - within <= interval.low and interval.high <= 1 + within else "undecided"


class _Measurement:
    """All rounds of one measurement."""

    def __init__(
        self, request: Request, run: Run, loaded: Loaded, subjects: Sequence[_Subject], prompts: list[list[int]]
    ) -> None:
        import torch

        self.request, self.run, self.loaded, self.subjects = request, run, loaded, subjects
        self.prompt = torch.tensor(prompts, dtype=torch.long, device=loaded.device)
        self.rule = MedianInterval(width=request.ci, budget=request.budget, most=request.max_iterations)
        self.stop, self.seconds, self.rounds, self.warmed = Stop.BUDGET_SPENT, 0.0, 0, 0.0
        self.warmed_rounds, self.cold = 0, False
        self.budget = Budget(request.budget)
        self._cost_told = False
        self.watch = Watch()

    @property
    def alive(self) -> list[_Subject]:
        """Modes that run."""
        return [each for each in self.subjects if each.prepared is not None]

    def prepare(self, engines: Engines) -> None:
        """Make every decoder and compare it with eager; HfbenchError when eager is all that is left."""
        for done, subject in enumerate(self.subjects):
            self.run.progress("prepare", done, len(self.subjects))
            if subject.mode == EAGER:
                subject.prepared = Prepared(Decoder(self.loaded.model, self.loaded.device))
            elif not subject.reason:
                with _reasons(subject):
                    subject.prepared = prepared(subject.mode, self.request, self.loaded, self.prompt, engines)
        self.run.progress("prepare", len(self.subjects), len(self.subjects))
        if len(self.alive) == 1:
            raise HfbenchError("; ".join(each.reason for each in self.subjects if each.reason), where="bench.modes")

    def warm_up(self) -> None:
        """Rounds that do not count, as many as leave room in the budget for one that does; the first of them tells what
        one costs."""
        self.budget = Budget(self.request.budget)
        for done in range(self.request.warmup):
            self.run.progress("warm-up", done, self.request.warmup)
            taken, last = self._round()
            self._tell_cost([*taken.values()])
            if self.budget.spent:  # another one would take as long again: this one counts, and that is told
                self.cold = not self.warmed_rounds
                self._keep(taken)
                self.seconds = last
                break
            self.warmed_rounds, self.warmed = done + 1, self.budget.elapsed
            if not self.budget.warms_up_again(last):
                break
        self.run.progress("warm-up", self.warmed_rounds, self.warmed_rounds)

    def _tell_cost(self, iterations: Sequence[Iteration]) -> None:
        """Say once how long a round takes, and what would make more of them fit."""
        if self._cost_told:
            return
        self._cost_told = True
        cost = RoundCost(first=sum(each.ttft for each in iterations), token=sum(each.tpot for each in iterations))
        self.run.metric("round", cost.seconds(self.request.new_tokens), "s")
        level, words = cost_words(cost, self.request, prompt=int(self.prompt.shape[1]), least=self.rule.least)
        self.run.log(words, level=level)

    def run_to_the_stop(self) -> None:
        """Rounds until the stopping rule speaks; none where the budget ended in the warm-up."""
        stop = Stop.BUDGET_SPENT if self.rounds else None
        if stop is None:
            self.watch = Watch()
        began = time.perf_counter()
        watched = [each.ratio for each in self.alive if each.mode != EAGER]
        self.run.progress("measure", 1.0 if stop else 0.0, 1.0)
        while stop is None:
            taken, last = self._round()
            self._tell_cost([*taken.values()])
            self._keep(taken)
            self.seconds, elapsed = time.perf_counter() - began, self.budget.elapsed
            stop = self.rule.verdict(watched, elapsed, last)
            self.run.progress("measure", 1.0 if stop else min(self.rule.share(watched, elapsed), 0.999), 1.0)
        self.stop = stop
        self.run.log(f"stopped after {counted(self.rounds, 'round')}: {stop}")

    def result(self, opened: Opened, *, why: str) -> ModesResult:
        """One row a mode and what can be said of the run."""
        company, request = self.watch.company(), self.request
        broken = ", ".join(each.mode for each in self.alive if not each.finite)
        notes = [why, f"{opened.location.given} was read once; every mode runs the same weights and the same prompt"]
        if self.stop is Stop.BUDGET_SPENT:
            notes.append(self.budget.note(counted(self.rounds, "round"), cold=self.cold))
        return ModesResult(
            model=request.model,
            folder=str(opened.location.folder.absolute()),
            device=str(self.loaded.device),
            dtype=self.loaded.dtype,
            batch=request.batch,
            prompt_tokens=int(self.prompt.shape[1]),
            new_tokens=request.new_tokens,
            threads=opened.threads,
            rounds=self.rounds,
            measured_seconds=self.seconds,
            warmup_rounds=self.warmed_rounds,
            warmup_seconds=self.warmed,
            stop_reason=str(self.stop),
            rows=[self._row(each) for each in self.subjects],
            verdicts=judge(
                [each.ratio for each in self.alive if each.mode != EAGER],
                rule=self.rule,
                stop=self.stop,
                company=company,
                overflow=f"logits of {broken} were NaN or infinite" if broken else "",
                threads=opened.cpu_threads,
            ),
            machine=company,
            notes=[note for note in notes if note],
        )

    def _row(self, subject: _Subject) -> ModeRow:
        if subject.prepared is None:
            return ModeRow(mode=subject.mode, word="not run", reason=subject.reason)
        eager = subject.mode == EAGER
        interval = median_interval(subject.ratio.values)
        return ModeRow(
            mode=subject.mode,
            word="reference" if eager else verdict_word(interval, within=self.request.ci),
            ttft=subject.ttft.summary(),
            tpot=subject.tpot.summary(),
            ratio=None if eager else subject.ratio.summary(),
            verified=subject.prepared.verified,
            compiled=subject.prepared.compiled,
            engine=subject.prepared.engine,
        )

    def _round(self) -> tuple[dict[str, Iteration], float]:
        """A round in which every mode has its turn, beginning with another one each time, and its seconds."""
        began, alive = time.perf_counter(), self.alive
        turn = self.rounds % len(alive)
        taken = {each.mode: self._generate(each) for each in (*alive[turn:], *alive[:turn])}
        return taken, time.perf_counter() - began

    def _keep(self, taken: Mapping[str, Iteration]) -> None:
        """Count a round."""
        for subject in self.alive:
            iteration = taken[subject.mode]
            subject.ttft.add(iteration.ttft)
            subject.tpot.add(iteration.tpot)
            subject.finite = subject.finite and iteration.finite
            if subject.mode != EAGER:
                subject.ratio.add(iteration.tpot / taken[EAGER].tpot)
        self.rounds += 1

    def _generate(self, subject: _Subject) -> Iteration:
        assert subject.prepared is not None
        remedy = "lower batch, prompt or new_tokens, or leave this mode out"
        with translated(self.request.model, f"mode {subject.mode} failed while generating", remedy):
            return subject.prepared.decoder.generate(self.prompt, self.request.new_tokens)


@contextmanager
def _reasons(subject: _Subject) -> Iterator[None]:
    """Keep an error of a mode as the reason why it is not run; a request that is wrong stays an error."""
    try:
        yield
    except (UsageError, Interrupted):
        raise
    except HfbenchError as error:
        in_file = "/" in error.where  # which file of an engine is damaged, the mode alone does not tell
        subject.reason = f"{error.where.rpartition('/')[2]}: {error.found}" if in_file else error.found


def _one_dtype(modes: Sequence[str], request: Request, engines: Engines, *, known_prompt: bool) -> str:
    """What to load the model as: all engines must agree, since they share the eager model they are compared with."""
    told = dict(_dtypes(modes, request, engines, known_prompt=known_prompt))
    if len(set(told.values())) > 1:
        each = ", ".join(f"{mode} {dtype}" for mode, dtype in told.items())
        raise UsageError(f"the engines are of different dtypes: {each}", where="modes", remedy="measure them apart")
    return next(iter(told.values()), request.dtype)


def _dtypes(
    modes: Sequence[str], request: Request, engines: Engines, *, known_prompt: bool
) -> Iterator[tuple[str, str]]:
    for mode in modes:
        if mode.startswith(ENGINE):
            yield mode, dtype_of(mode, request, engines, known_prompt=known_prompt)
