"""bench.generate's work: load a model, warm it up, and time generations until they say enough."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hfbench.errors import UsageError
from hfbench.gpu.ceilings import measure_ceilings
from hfbench.gpu.decoding import Decoder, Iteration
from hfbench.gpu.devices import Chosen, choose_device
from hfbench.gpu.generate_model import Loaded, Words, translated
from hfbench.gpu.generate_modes import ENGINE, Engines, Prepared, prepare, prepare_engine, refuse_mode
from hfbench.gpu.generate_open import Opened, open_model, unused_note
from hfbench.gpu.generate_request import Request, Setting
from hfbench.gpu.generate_result import GenerateResult, Metrics, WarmUp
from hfbench.gpu.memory import forget_peak, peak_memory
from hfbench.gpu.prompts import ordinary_vocabulary, random_prompts, read_prompt, text_prompts
from hfbench.gpu.roofline import Roofline, roofline, step_work
from hfbench.gpu.telemetry.attach import WhileRunning
from hfbench.gpu.telemetry.use import GpuUse
from hfbench.gpu.timing import formulas
from hfbench.gpu.timing.machine import Company, Watch
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.stopping import Budget, MedianInterval, Stop
from hfbench.gpu.timing.verdicts import Verdict, judge
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


def measure(request: Request, run: Run, engines: Engines | None = None) -> GenerateResult:
    """Time prefill and decode of one model, all raw samples kept; `engines` opens those that modes name.

    UsageError for a prompt that does not fit the context, MissingError for a device that is not there, HfbenchError
    for a model that cannot be loaded.
    """
    if request.new_tokens < 2:
        raise UsageError("new_tokens must be at least 2: one token has no time per further token")
    text = read_prompt(request.prompt_text, request.prompt_file)
    chosen = choose_device(request.device)
    refuse_mode(request.mode, on_gpu=chosen.gpu is not None)
    dtype = dtype_of(request.mode, request, engines, known_prompt=not text)
    opened = open_model(request.model, chosen.gpu, run, threads=request.threads, with_text=bool(text))
    prompts = prompts_for(request, opened, text)
    forget_peak()
    loaded = opened.load(run, dtype=dtype, attention=request.attention)
    measurement = _Measurement(request, run, chosen, loaded, opened.words, prompts, engines)
    measurement.prepare()
    measurement.warm_up()
    with WhileRunning(run, chosen.lease) as watched:
        measurement.run_to_the_stop()
    return _result(measurement, opened, use=watched.use)


@dataclass
class _Measurement:
    """The iterations of one measurement and what is watched while they run."""

    request: Request
    run: Run
    chosen: Chosen
    loaded: Loaded
    words: Words
    prompts: list[list[int]]
    engines: Engines | None = None
    warmed: list[float] = field(default_factory=list)
    iterations: list[Iteration] = field(default_factory=list)
    cold: bool = False
    """Whether the budget ended in the warm-up, so that the only iteration was not warmed up."""
    stop: Stop = Stop.BUDGET_SPENT
    seconds: float = 0.0
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        import torch

        self.rule = MedianInterval(width=self.request.ci, budget=self.request.budget, most=self.request.max_iterations)
        self.ttft = Samples("ttft", formulas.TTFT)
        self.tpot = Samples("tpot", formulas.TPOT)
        self.prepared = Prepared(Decoder(self.loaded.model, self.loaded.device))
        self.prompt = torch.tensor(self.prompts, dtype=torch.long, device=self.loaded.device)
        self.budget = Budget(self.request.budget)

    @property
    def watched(self) -> tuple[Samples, Samples]:
        """The metrics whose intervals end the measurement."""
        return self.ttft, self.tpot

    def prepare(self) -> None:
        """Build the decoder of the mode, and compare it with eager; HfbenchError when it is not the same."""
        if self.request.mode == "eager":
            return
        phase = "compile" if self.request.mode == "compile" else "verify"
        self.run.progress(phase, 0)
        self.prepared = prepared(self.request.mode, self.request, self.loaded, self.prompt, self.engines)
        self.run.progress(phase, 1, 1)
        if self.prepared.verified:
            self.run.log(f"verified against {self.prepared.verified.sentence}")

    def warm_up(self) -> None:
        """Run the iterations that do not count, as many as leave room in the budget for one that does."""
        self.budget = Budget(self.request.budget)
        for number in range(self.request.warmup):
            self.run.progress("warm-up", number, self.request.warmup)
            iteration = self._once()
            if self.budget.spent:  # another one would take as long again: this one counts, and that is told
                self.cold = not self.warmed
                self._keep(iteration)
                break
            self.warmed.append(iteration.e2e)
            if not self.budget.warms_up_again(iteration.e2e):
                break
        if len(self.warmed) < self.request.warmup:
            self.run.log(
                f"warm-up ended after {counted(len(self.warmed), 'iteration')}: the budget was spent", level="warning"
            )
        self.run.progress("warm-up", len(self.warmed), len(self.warmed))

    def run_to_the_stop(self) -> None:
        """Iterate until the stopping rule speaks; not at all where the budget ended in the warm-up."""
        began, share = time.perf_counter(), 0.0
        stop = Stop.BUDGET_SPENT if self.iterations else None
        if stop is None:
            self.watch = Watch()
        self.run.progress("measure", 1.0 if stop else 0.0, 1.0)
        self.seconds = sum(each.e2e for each in self.iterations)
        while stop is None:
            self._keep(self._once())
            self.seconds = time.perf_counter() - began
            stop = self.rule.verdict(self.watched, self.budget.elapsed, self.iterations[-1].e2e)
            share = max(share, self.rule.share(self.watched, self.budget.elapsed))
            self.run.progress("measure", 1.0 if stop else min(share, 0.999), 1.0)
        self.stop = stop
        self.run.log(f"stopped after {counted(len(self.iterations), 'iteration')}: {stop}")

    def varies(self) -> str:
        """A sentence when greedy decoding of one prompt did not give the same tokens each time."""
        first = self.iterations[0].output_ids
        different = sum(each.output_ids != first for each in self.iterations)
        taken = counted(len(self.iterations), "iteration")
        return f"{different} of {taken} gave other tokens than the first" if different else ""

    def overflow(self) -> str:
        """A sentence when logits were NaN or infinite, so that the tokens mean nothing."""
        broken = sum(not each.finite for each in self.iterations)
        taken = counted(len(self.iterations), "iteration")
        return f"logits of {broken} of {taken} were NaN or infinite" if broken else ""

    def _once(self) -> Iteration:
        remedy = "lower batch, prompt or new_tokens, or try another dtype"
        with translated(self.request.model, "the model failed while generating", remedy):
            return self.prepared.decoder.generate(self.prompt, self.request.new_tokens)

    def _keep(self, iteration: Iteration) -> None:
        self.iterations.append(iteration)
        self.ttft.add(iteration.ttft)
        self.tpot.add(iteration.tpot)
        for name in ("ttft", "tpot", "e2e"):
            self.run.metric(name, getattr(iteration, name), "s")


def dtype_of(mode: str, request: Setting, engines: Engines | None, *, known_prompt: bool) -> str:
    """What to load the model as: the engine's own dtype where a mode names one and none was asked for.

    UsageError when the engine was built for other shapes than are asked for.
    """
    if not mode.startswith(ENGINE) or engines is None:
        return request.dtype
    told = engines.dtype(
        mode, batch=request.batch, prompt=request.prompt if known_prompt else None, new_tokens=request.new_tokens
    )
    return told if request.dtype == "auto" else request.dtype


def prepared(mode: str, request: Setting, loaded: Loaded, prompt: Any, engines: Engines | None) -> Prepared:
    """The decoder of a mode, verified against eager; HfbenchError when it is not the same."""
    new_tokens = request.new_tokens
    with translated(request.model, f"mode {mode} failed", "use mode eager"):
        if mode.startswith(ENGINE) and engines is not None:
            return prepare_engine(engines, mode, loaded, prompt=prompt, new_tokens=new_tokens, threads=request.threads)
        return prepare(
            mode,
            loaded.model,
            loaded.device,
            dtype=loaded.dtype,
            prompt=prompt,
            new_tokens=new_tokens,
            compile_mode=request.compile_mode,
        )


def _refuse_overlong(opened: Opened, prompt: int, new_tokens: int) -> None:
    what = f"{counted(prompt, 'prompt token')} and {new_tokens} new ones"
    opened.refuse_overlong(prompt + new_tokens, what, remedy="prompt or new_tokens")


def prompts_for(request: Setting, opened: Opened, text: str) -> list[list[int]]:
    """Token ids of every sequence: the given text in each, or random rows that differ.

    UsageError when they and the new tokens exceed the context.
    """
    _refuse_overlong(opened, request.prompt if not text else 1, request.new_tokens)  # before a random one is drawn
    if text:
        prompts = text_prompts(text, opened.words, request.batch)
        _refuse_overlong(opened, len(prompts[0]), request.new_tokens)
        return prompts
    known, special = ordinary_vocabulary(opened.config, opened.words)
    return random_prompts(
        vocabulary=known, special=special, length=request.prompt, batch=request.batch, seed=request.seed
    )


def _result(taken: _Measurement, opened: Opened, *, use: GpuUse | None) -> GenerateResult:
    request, loaded, outputs = taken.request, taken.loaded, taken.iterations[-1].output_ids
    company, peak = taken.watch.company(), peak_memory(loaded.device)  # before the ceilings take memory and time
    return GenerateResult(
        model=request.model,
        folder=str(opened.location.folder.absolute()),
        device=str(loaded.device),
        device_name=opened.gpu.name if opened.gpu else platform.machine(),
        dtype=loaded.dtype,
        attention=request.attention,
        mode=request.mode,
        batch=request.batch,
        prompt_tokens=len(taken.prompts[0]),
        new_tokens=request.new_tokens,
        seed=request.seed,
        threads=opened.threads,
        load_seconds=loaded.seconds,
        warmup=WarmUp(asked=request.warmup, iterations=len(taken.warmed), seconds=taken.warmed),
        iterations=len(taken.iterations),
        measured_seconds=taken.seconds,
        stop_reason=str(taken.stop),
        ci=request.ci,
        budget=request.budget,
        metrics=_metrics(taken),
        verdicts=_verdicts(taken, opened, company, use),
        machine=company,
        peak_memory=peak,
        output_ids=outputs,
        output_text=words.decode(outputs[0]) if (words := taken.words.tokenizer) is not None else "",
        notes=_notes(taken),
        gpu=use,
        verified=taken.prepared.verified,
        compiled=taken.prepared.compiled,
        engine=taken.prepared.engine,
        roofline=_roofline(taken, opened),
    )


def _roofline(taken: _Measurement, opened: Opened) -> Roofline:
    """The median step against the ceilings, which are measured now; context is the mean over the decode steps."""
    request, loaded = taken.request, taken.loaded
    taken.run.log("measuring what the device copies and multiplies at best")
    context = len(taken.prompts[0]) + request.new_tokens / 2
    return roofline(
        step_work(loaded.model, opened.location, dtype=loaded.dtype, batch=request.batch, context=context),
        tpot=taken.tpot.summary().p50,
        context=context,
        ceilings=measure_ceilings(loaded.device, loaded.dtype),
        card=opened.gpu.name if opened.gpu else None,
    )


def _metrics(taken: _Measurement) -> Metrics:
    """Summaries of all quantities; the derived ones come from the raw marks, never from rounded values."""
    batch, tokens, prompt = taken.request.batch, taken.request.new_tokens, len(taken.prompts[0])
    runs = taken.iterations
    return Metrics(
        ttft=taken.ttft.summary(),
        tpot=taken.tpot.summary(),
        itl=Samples("itl", formulas.ITL, [gap for each in runs for gap in each.gaps]).summary(),
        e2e=Samples("e2e", formulas.E2E, [each.e2e for each in runs]).summary(),
        throughput=Samples("throughput", formulas.THROUGHPUT, [batch * tokens / each.e2e for each in runs]).summary(),
        prefill_rate=Samples(
            "prefill_rate", formulas.PREFILL_RATE, [batch * prompt / each.ttft for each in runs]
        ).summary(),
    )


def _verdicts(taken: _Measurement, opened: Opened, company: Company, use: GpuUse | None) -> list[Verdict]:
    return judge(
        taken.watched,
        rule=taken.rule,
        stop=taken.stop,
        company=company,
        varies=taken.varies(),
        overflow=taken.overflow(),
        throttle=use.throttle if use else None,
        threads=opened.cpu_threads,
    )


def _notes(taken: _Measurement) -> list[str]:
    """What a reader of the numbers would otherwise assume."""
    request, loaded = taken.request, taken.loaded
    notes = [*filter(None, [taken.chosen.why])]
    notes += [f"decoding does not stop at an end token: every iteration makes {request.new_tokens} tokens"]
    if request.dtype != "auto" and loaded.device.type == "cpu" and loaded.dtype != "fp32":
        notes.append(f"{loaded.dtype} was kept on the CPU as asked; fp32 is often faster there")
    if not (request.prompt_text or request.prompt_file):
        notes.append("the prompt was random tokens: the output text means nothing")
    if taken.words.tokenizer is None:
        notes.append(f"no output text: {taken.words.reason}")
    if request.batch > 1 and (request.prompt_text or request.prompt_file):
        notes.append("every sequence of the batch has the same prompt")
    if taken.loaded.unused:
        notes.append(unused_note(taken.loaded.unused))
    if len(taken.warmed) < request.warmup:
        fitted = f"{len(taken.warmed)} of {counted(request.warmup, 'warm-up iteration')}"
        notes.append(f"only {fitted} fitted the budget")
    if taken.stop is Stop.BUDGET_SPENT:
        notes.append(taken.budget.note(counted(len(taken.iterations), "iteration"), cold=taken.cold))
    return notes
