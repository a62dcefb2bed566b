"""graph.verify's work: load a model, capture its decode step at every batch size, and check the replays."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hfbench.gpu.devices import choose_device
from hfbench.gpu.generate_model import Loaded, translated
from hfbench.gpu.generate_open import Opened, open_model
from hfbench.gpu.graphs.faults import Report, SizeCheck
from hfbench.gpu.graphs.recording import Recorder, recorder_for, room_for
from hfbench.gpu.graphs.tolerance import Tolerance, tolerance_of
from hfbench.gpu.prompts import ordinary_vocabulary, random_prompts

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


def verify_model(
    model: str,
    run: Run,
    *,
    device: str,
    dtype: str,
    attention: str,
    sizes: Sequence[int],
    prompt: int,
    steps: int,
    threads: int,
    seed: int,
) -> Report:
    """Check the captured decode step of a model at every batch size.

    UsageError for a prompt beyond the context, MissingError for a device that is not there, HfbenchError for a model
    that cannot be loaded or run with a static cache.
    """
    chosen = choose_device(device)
    opened = open_model(model, chosen.gpu, run, threads=threads, with_text=False)
    what = f"a prompt of {prompt}, a token to warm up and {steps} steps"
    opened.refuse_overlong(prompt + 1 + steps, what, remedy="prompt or steps")
    loaded = opened.load(run, dtype=dtype, attention=attention)
    tolerance, recorder = tolerance_of(loaded.dtype), recorder_for(loaded.device)
    ordered = sorted(set(sizes), reverse=True)
    run.log(f"capturing batch {', '.join(map(str, ordered))} with a {recorder.kind}")
    with translated(model, "the model failed while its decode step was verified", "try fewer or smaller batches"):
        checked = _checked(opened, loaded, run, recorder, tolerance, ordered, prompt, steps, seed)
    return Report(
        folder=str(opened.location.folder),
        device=str(loaded.device),
        device_reason=chosen.why,
        device_name=opened.gpu.name if opened.gpu else platform.machine(),
        dtype=loaded.dtype,
        attention=attention,
        capture=recorder.kind,
        prompt_tokens=prompt,
        threads=opened.threads,
        tolerance_eager=tolerance.eager,
        tolerance_no_cache=tolerance.no_cache,
        tolerance_reason=tolerance.reason,
        sizes=checked,
    )


def _checked(
    opened: Opened,
    loaded: Loaded,
    run: Run,
    recorder: Recorder,
    tolerance: Tolerance,
    sizes: Sequence[int],
    prompt: int,
    steps: int,
    seed: int,
) -> tuple[SizeCheck, ...]:
    """Every size, with prompts of ordinary tokens that differ from one size to the next."""
    import torch

    from hfbench.gpu.graphs.step import DecodeStep
    from hfbench.gpu.graphs.verify import verify

    known, special = ordinary_vocabulary(opened.config, opened.words)
    length = prompt + 1 + steps

    def prompts(batch: int) -> Any:
        rows = random_prompts(vocabulary=known, special=special, length=length, batch=batch, seed=seed + batch)
        return torch.tensor(rows, dtype=torch.long, device=loaded.device)

    return verify(
        sizes,
        lambda batch: DecodeStep(loaded.model, loaded.device, batch=batch, room=room_for(prompt, steps)),
        recorder=recorder,
        prompts=prompts,
        steps=steps,
        tolerance=tolerance,
        watch=run.progress,
    )
