"""bench.compare's work: two settings in turns, in random order each round, so that a neighbour slows both alike."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hfbench.errors import UsageError
from hfbench.gpu.decoding import Iteration
from hfbench.gpu.devices import choose_device
from hfbench.gpu.generate import dtype_of, prepared, prompts_for
from hfbench.gpu.generate_model import Loaded, translated
from hfbench.gpu.generate_modes import Engines, Prepared, refuse_mode
from hfbench.gpu.generate_open import Opened, open_model
from hfbench.gpu.generate_request import Request
from hfbench.gpu.prompts import read_prompt
from hfbench.gpu.telemetry.attach import WhileRunning
from hfbench.gpu.telemetry.use import GpuUse
from hfbench.gpu.timing import formulas
from hfbench.gpu.timing.machine import Watch
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.stopping import Budget, MedianInterval, Stop
from hfbench.gpu.timing.verdicts import judge
from hfbench.gpu.turns_result import TakenTurns, TurnMetrics, TurnRow
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass
class _Side:
    """One of the two under measurement."""

    name: str
    request: Request
    opened: Opened
    loaded: Loaded
    weights: tuple[str, ...]
    """What tells whether the other side could run the same weights."""
    prompt: Any
    prepared: Prepared | None = None
    finite: bool = True
    ttft: Samples = field(default_factory=lambda: Samples("ttft", formulas.TTFT))
    tpot: Samples = field(default_factory=lambda: Samples("tpot", formulas.TPOT))
    e2e: Samples = field(default_factory=lambda: Samples("e2e", formulas.E2E))

    def generate(self) -> Iteration:
        """One generation, with this side's threads."""
        import torch

        assert self.prepared is not None
        torch.set_num_threads(self.opened.threads)
        with translated(
            self.request.model, f"{self.name} failed while generating", "lower batch, prompt or new_tokens"
        ):
            return self.prepared.decoder.generate(self.prompt, self.request.new_tokens)

    def keep(self, iteration: Iteration) -> None:
        """Count one generation."""
        for samples in (self.ttft, self.tpot, self.e2e):
            samples.add(getattr(iteration, samples.name))
        self.finite = self.finite and iteration.finite

    def row(self) -> TurnRow:
        """What came of it."""
        batch, tokens, prompt = self.request.batch, self.request.new_tokens, int(self.prompt.shape[1])
        rate = Samples("throughput", formulas.THROUGHPUT, [batch * tokens / each for each in self.e2e.values])
        prefill = Samples("prefill_rate", formulas.PREFILL_RATE, [batch * prompt / each for each in self.ttft.values])
        return TurnRow(
            name=self.name,
            model=self.request.model,
            device=str(self.loaded.device),
            dtype=self.loaded.dtype,
            mode=self.request.mode,
            attention=self.request.attention,
            batch=batch,
            prompt_tokens=prompt,
            new_tokens=tokens,
            threads=self.opened.threads,
            metrics=TurnMetrics(
                ttft=self.ttft.summary(),
                tpot=self.tpot.summary(),
                e2e=self.e2e.summary(),
                throughput=rate.summary(),
                prefill_rate=prefill.summary(),
            ),
            verified=self.prepared.verified if self.prepared else None,
        )


class Turns:
    """Two requests measured in turns. How long to measure, and the seed of the order, are told by A."""

    def __init__(self, a: Request, b: Request, run: Run, engines: Engines) -> None:
        self.request, self.run, self.engines = a, run, engines
        if a.device != b.device:
            raise UsageError("A and B are to run on two devices, and a run holds one", where="bench.compare")
        self.chosen = choose_device(a.device)
        for each in (a, b):
            if each.new_tokens < 2:
                raise UsageError("new_tokens must be at least 2: one token has no time per further token")
            refuse_mode(each.mode, on_gpu=self.chosen.gpu is not None)
        first = self._open("A", a, None)
        self.sides = first, self._open("B", b, first)
        self.rule = MedianInterval(width=a.ci, budget=a.budget, most=a.max_iterations)
        self.ratios = [Samples(f"{name} of B to A", formulas.TURNS) for name in ("tpot", "ttft")]
        self.first = ""
        self.stop, self.seconds = Stop.BUDGET_SPENT, 0.0
        self.budget, self.cold = Budget(a.budget), False
        self._lots = random.Random(a.seed)

    def measure(self) -> TakenTurns:
        """Warm up, then rounds until the ratios are known or the budget is spent."""
        self._warm_up()
        watch = Watch()
        with WhileRunning(self.run, self.chosen.lease) as watched:
            self._run_to_the_stop()
        return self._taken(watch, watched.use)

    def _open(self, name: str, request: Request, other: _Side | None) -> _Side:
        """Load one side and verify its mode; weights that the other side holds are not read again."""
        import torch

        text = read_prompt(request.prompt_text, request.prompt_file)
        dtype = dtype_of(request.mode, request, self.engines, known_prompt=not text)
        opened = open_model(request.model, self.chosen.gpu, self.run, threads=request.threads, with_text=bool(text))
        prompts = prompts_for(request, opened, text)
        weights = (str(opened.location.folder), dtype, request.attention)
        shared = other.loaded if other is not None and other.weights == weights else None
        loaded = shared or opened.load(self.run, dtype=dtype, attention=request.attention)
        prompt = torch.tensor(prompts, dtype=torch.long, device=loaded.device)
        self.run.progress(f"prepare {name}", 0)
        ready = prepared(request.mode, request, loaded, prompt, self.engines)
        self.run.progress(f"prepare {name}", 1, 1)
        return _Side(
            name=name, request=request, opened=opened, loaded=loaded, weights=weights, prompt=prompt, prepared=ready
        )

    def _warm_up(self) -> None:
        """Rounds that do not count, as many as leave room in the budget for one that does."""
        self.budget, done = Budget(self.request.budget), 0
        while done < self.request.warmup:
            self.run.progress("warm-up", done, self.request.warmup)
            taken, last = self._round()
            if self.budget.spent:  # another one would take as long again: this one counts, and that is told
                self.cold = not done
                self._keep(taken)
                self.seconds = last
                break
            done += 1
            if not self.budget.warms_up_again(last):
                break
        self.run.progress("warm-up", done, done)

    def _run_to_the_stop(self) -> None:
        began, stop = time.perf_counter(), Stop.BUDGET_SPENT if self.first else None
        self.run.progress("measure", 1.0 if stop else 0.0, 1.0)
        while stop is None:
            taken, last = self._round()
            self._keep(taken)
            self.seconds, elapsed = time.perf_counter() - began, self.budget.elapsed
            stop = self.rule.verdict(self.ratios, elapsed, last)
            share = self.rule.share(self.ratios, elapsed)
            self.run.progress("measure", 1.0 if stop else min(share, 0.999), 1.0)
        self.stop = stop
        self.run.log(f"stopped after {counted(len(self.first), 'round')}: {stop}")

    def _round(self) -> tuple[dict[str, Iteration], float]:
        """One generation of each side by its name, in an order drawn by lot, and the seconds of both."""
        began = time.perf_counter()
        taken = {side.name: side.generate() for side in self._lots.sample(self.sides, 2)}
        return taken, time.perf_counter() - began

    def _keep(self, taken: Mapping[str, Iteration]) -> None:
        """Count a round."""
        a, b = self.sides
        self.first += next(iter(taken))
        for each in self.sides:
            each.keep(taken[each.name])
        for ratio, name in zip(self.ratios, ("tpot", "ttft"), strict=True):
            one, other = getattr(a, name).values[-1], getattr(b, name).values[-1]
            ratio.add(other / one)
            for side, value in (("A", one), ("B", other)):
                self.run.metric(f"{name} {side}", value, "s")

    def _taken(self, watch: Watch, use: GpuUse | None) -> TakenTurns:
        company = watch.company()
        broken = " and ".join(side.name for side in self.sides if not side.finite)
        a, b = self.sides
        notes = [self.chosen.why]
        notes += ["both run the same weights, read once"] if a.loaded is b.loaded else []
        if self.stop is Stop.BUDGET_SPENT:
            notes.append(self.budget.note(counted(len(self.first), "round"), cold=self.cold))
        return TakenTurns(
            rows=(a.row(), b.row()),
            first=self.first,
            ratio=self.ratios[0].summary(),
            rounds=len(self.first),
            measured_seconds=self.seconds,
            stop_reason=str(self.stop),
            verdicts=judge(
                self.ratios,
                rule=self.rule,
                stop=self.stop,
                company=company,
                overflow=f"logits of {broken} were NaN or infinite" if broken else "",
                throttle=use.throttle if use else None,
                threads=max(each.opened.cpu_threads for each in self.sides),
            ),
            machine=company,
            gpu=use,
            notes=[note for note in notes if note],
        )
