"""Whether a captured decode step computes what the step would: several replays, fresh inputs, two references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hfbench.gpu.generate_model import first_line
from hfbench.gpu.graphs.cache_state import Kept, Layout, layout
from hfbench.gpu.graphs.faults import Fault, Finding, SizeCheck, StepCheck, in_order
from hfbench.gpu.graphs.recording import CaptureFailed, Recorder, Recording, SyncDuringCapture
from hfbench.gpu.graphs.tolerance import Tolerance


class Step(Protocol):
    """What is captured. `DecodeStep` is the one hfbench uses."""

    model: Any
    cache: Any

    @property
    def inputs(self) -> dict[str, Any]: ...
    def prefill(self, prompt: Any) -> Any: ...
    def keep(self) -> None: ...
    def rewind(self) -> None: ...
    def write(self, tokens: Any) -> None: ...
    def run(self) -> Any: ...


@dataclass
class Captured:
    """A step after its capture, with what was seen on the way. `recording` is None when there is none."""

    step: Step
    prompt: Any
    tokens: Any
    """Fresh tokens for the steps to come, batch x steps."""
    warm_tokens: Any
    findings: list[Finding] = field(default_factory=list)
    recording: Recording | None = None
    operations: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    kept: Kept | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    cache: Layout = field(default_factory=lambda: Layout({}))

    def saw(self, fault: Fault, evidence: str) -> None:
        """Note a fault when there is evidence."""
        if evidence:
            self.findings.append(Finding(fault=fault, evidence=evidence))


def verify(
    sizes: Sequence[int],
    make: Callable[[int], Step],
    *,
    recorder: Recorder,
    prompts: Callable[[int], Any],
    steps: int,
    tolerance: Tolerance,
    watch: Callable[[str, int, int], None] = lambda phase, done, total: None,
) -> tuple[SizeCheck, ...]:
    """Capture a step of every batch size, the largest first, then check each against both references.

    `make` gives a step of a batch size, `prompts` token ids of batch x (prompt + 1 + steps): the prompt, one token to
    warm up with, and fresh ones for the steps.
    """
    import torch

    order, total = sorted(sizes, reverse=True), len(sizes)
    captured: list[Captured] = []
    with torch.inference_mode():
        for size in order:
            watch("capture", len(captured), total)
            captured.append(capture(make(size), prompts(size), steps=steps, recorder=recorder))
        checked: list[SizeCheck] = []
        for size, each in zip(order, captured, strict=True):
            watch("verify", len(checked), total)
            checked.append(check(each, batch=size, tolerance=tolerance))
    watch("verify", total, total)
    return tuple(checked)


def capture(step: Step, ids: Any, *, steps: int, recorder: Recorder) -> Captured:
    """Prefill, warm up, rewind and record a step; `ids` as in `verify`. What goes wrong becomes findings."""
    from hfbench.gpu.graphs.operations import Operations

    split = ids.shape[1] - steps
    taken = Captured(step, ids[:, : split - 1], ids[:, split:], ids[:, split - 1 : split])
    step.prefill(taken.prompt)
    step.keep()
    before, taken.kept = layout(step.cache), Kept(step.cache)
    step.write(taken.warm_tokens)
    recorder.warm_up(step.run)
    warmed = layout(step.cache)
    if missing := warmed.appeared(before):
        taken.saw(Fault.UNINITIALISED, f"before the warm-up {missing}")
        return taken
    step.rewind()
    step.write(taken.tokens[:, :1])
    at_capture = layout(step.cache)
    taken.inputs, seen = dict(step.inputs), Operations()

    def run() -> Any:
        with seen:
            return step.run()

    try:
        taken.recording = recorder.record(run)
    except SyncDuringCapture as refused:
        taken.saw(Fault.SYNC, str(refused))
        return taken
    except CaptureFailed as refused:
        taken.saw(Fault.REFUSED, str(refused))
        return taken
    taken.operations, taken.cache = seen.seen, layout(step.cache)
    taken.saw(Fault.UNINITIALISED, taken.cache.appeared(at_capture))
    taken.saw(Fault.GROWING, taken.cache.moved(at_capture))
    step.rewind()
    return taken


def check(taken: Captured, *, batch: int, tolerance: Tolerance) -> SizeCheck:
    """Replay every step with fresh tokens beside both references, and name what is wrong."""
    rows: list[StepCheck] = []
    if taken.recording is not None and taken.kept is not None:
        rows = _checked(taken, taken.recording, taken.kept, batch, tolerance)
    findings = in_order(taken.findings)
    return SizeCheck(
        batch=batch,
        verdict="fail" if findings else "pass",
        fault=str(findings[0].fault) if findings else "",
        evidence=findings[0].evidence if findings else "",
        operations=len(taken.operations),
        findings=findings,
        steps=tuple(rows),
    )


@dataclass(frozen=True)
class _References:
    """Logits of every step by the step run eagerly and by a forward without a cache."""

    eager: list[Any]
    no_cache: list[Any]
    apart: str
    """The first operation of an eager step that the capture did not have."""
    tolerance: Tolerance

    def finite(self, step: int) -> bool:
        """Whether the forward without a cache gives numbers: where it does not, no cache and no graph is at fault."""
        return bool(self.no_cache[step].isfinite().all())

    def errors(self, step: int, logits: Any) -> tuple[float | None, float | None]:
        """How far logits lie from both."""
        return _error(logits, self.eager[step]), _error(logits, self.no_cache[step])

    def agree(self, step: int, logits: Any) -> bool:
        """Whether logits lie within both tolerances."""
        eager, no_cache = self.errors(step, logits)
        return _within(eager, self.tolerance.eager) and _within(no_cache, self.tolerance.no_cache)


def _checked(taken: Captured, recording: Recording, kept: Kept, batch: int, tolerance: Tolerance) -> list[StepCheck]:
    left, lengths = Kept(taken.step.cache), kept.lengths()  # as the step's own rewind left the cache
    references = _references(taken, kept, tolerance)
    if all(references.finite(step) for step in range(taken.tokens.shape[1])):
        taken.saw(Fault.UNINITIALISED, kept.finite())
    left.restore()
    try:
        replayed, places = _replayed(taken, recording)
        same = _same_for_other_tokens(taken, recording, kept)
    except (RuntimeError, IndexError) as error:  # what was baked or not reset has led outside the cache
        fault = Fault.BAKED if references.apart else Fault.NOT_RESET if lengths else Fault.REFUSED
        why = references.apart or lengths
        taken.saw(fault, f"{why}; a replay failed with {first_line(error)}".removeprefix("; "))
        return []
    rows = []
    for step, (logits, (inputs, cache)) in enumerate(zip(replayed, places, strict=True)):
        eager, no_cache = references.errors(step, logits)
        finite, shaped = bool(logits.isfinite().all()), logits.shape == references.no_cache[step].shape
        ok = references.agree(step, logits) and finite and shaped and not inputs and not cache
        rows.append(
            StepCheck(
                batch=batch,
                step=step,
                position=taken.prompt.shape[1] + step,
                against_eager=eager,
                against_no_cache=no_cache,
                finite=finite,
                shape_kept=shaped,
                inputs_in_place=not inputs,
                cache_in_place=not cache,
                ok=ok,
            )
        )
    taken.saw(Fault.STALE, next((inputs for inputs, _ in places if inputs), "") or same)
    taken.saw(Fault.GROWING, next((cache for _, cache in places if cache), ""))
    if not all(row.ok for row in rows):
        kept.restore()
        again = _replayed(taken, recording)[0]
        if all(references.agree(step, logits) for step, logits in enumerate(again)):
            told = lengths or "contents of the cache differ"
            taken.saw(Fault.NOT_RESET, f"{told}; with the cache put back every step is right")
        else:
            _explain(taken, rows, references)
    return rows


def _explain(taken: Captured, rows: list[StepCheck], references: _References) -> None:
    """Name what stays wrong whatever the cache held: by the reference that the replay leaves."""
    tolerance = references.tolerance
    broken = [row.step for row in rows if not row.finite]
    if broken:
        told = "" if references.finite(broken[0]) else ", and so does a forward without cache and graph"
        taken.saw(Fault.NOT_FINITE, f"step {broken[0]} gave NaN or infinity{told}")
        return
    off_eager = [row for row in rows if not _within(row.against_eager, tolerance.eager)]
    off_truth = [row for row in rows if not _within(row.against_no_cache, tolerance.no_cache)]
    if off_eager:
        how = references.apart or "whatever Python worked out at capture is repeated"
        far = _shown(off_eager[0].against_eager)
        taken.saw(Fault.BAKED, f"{how}; step {off_eager[0].step} of the replay is off the step run eagerly by {far}")
    elif off_truth:
        far = _shown(off_truth[0].against_no_cache)
        taken.saw(Fault.WRONG_STEP, f"step {off_truth[0].step} is off by {far}, replayed and run eagerly alike")


def _replayed(taken: Captured, recording: Recording) -> tuple[list[Any], list[tuple[str, str]]]:
    """Logits of every step from where the step's own rewind left the cache, and what was not in its place."""
    logits, places = [], []
    for step in range(taken.tokens.shape[1]):
        tokens = taken.tokens[:, step : step + 1]
        taken.step.write(tokens)
        recording.replay()
        logits.append(recording.output.clone())
        places.append((_strayed(taken), layout(taken.step.cache).moved(taken.cache)))
    return logits, places


def _strayed(taken: Captured) -> str:
    """The first input that was written to another place than the one captured, as a clause."""
    for name, captured in taken.inputs.items():
        now = taken.step.inputs.get(name)
        if now is None or now.data_ptr() != captured.data_ptr() or now.shape != captured.shape:
            where = "nowhere" if now is None else f"at {now.data_ptr():#x}"
            return f"{name} were captured at {captured.data_ptr():#x} and new ones lie {where}"
    return ""


def _same_for_other_tokens(taken: Captured, recording: Recording, kept: Kept) -> str:
    """Told when two different tokens after one prompt give the same logits: the replay reads neither."""
    tokens = taken.tokens[:, :1]
    seen = []
    for each in (tokens, (tokens + 1) % taken.step.model.config.get_text_config().vocab_size):
        kept.restore()
        taken.step.write(each)
        recording.replay()
        seen.append(recording.output.clone())
    return "two different tokens gave the same logits" if bool((seen[0] == seen[1]).all()) else ""


def _references(taken: Captured, kept: Kept, tolerance: Tolerance) -> _References:
    """Run every step without a graph from the end of the prompt, and one forward over all tokens without a cache."""
    import torch

    from hfbench.gpu.graphs.operations import Operations, changed

    kept.restore()
    eager, apart = [], ""
    for step in range(taken.tokens.shape[1]):
        taken.step.write(taken.tokens[:, step : step + 1])
        with Operations() as now:
            logits = taken.step.run()
        eager.append(logits.clone())
        apart = apart or changed(taken.operations, now.seen)
    ids = torch.cat([taken.prompt, taken.tokens], dim=1)
    logits = taken.step.model(input_ids=ids, use_cache=False).logits
    no_cache = [logits[:, place] for place in range(taken.prompt.shape[1], ids.shape[1])]
    return _References(eager, no_cache, apart, tolerance)


def _error(logits: Any, reference: Any) -> float | None:
    """The largest difference as a share of the reference's largest logit; None where it is not finite."""
    if logits.shape != reference.shape:
        return None
    apart, scale = (logits.float() - reference.float()).abs().max().item(), reference.float().abs().max().item()
    error = apart / scale if scale else apart
    return error if error == error and error != float("inf") else None


def _within(error: float | None, bound: float) -> bool:
    return error is not None and error <= bound


def _shown(error: float | None) -> str:
    return "NaN" if error is None else f"{error:.1e} of the largest logit"
