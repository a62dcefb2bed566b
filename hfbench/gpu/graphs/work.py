"""graph.verify's work: load a model, capture its decode step at every batch size, and check the replays."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hfbench.errors import UsageError
from hfbench.gpu.devices import find_device
from hfbench.gpu.generate_model import (
    context_length,
    import_libraries,
    load_model,
    load_tokenizer,
    pin_threads,
    read_config,
    refuse_broken,
    stay_offline,
    translated,
)
from hfbench.gpu.graphs.faults import Report
from hfbench.gpu.graphs.recording import recorder_for, room_for
from hfbench.gpu.graphs.tolerance import tolerance_of
from hfbench.gpu.prompts import ordinary_vocabulary, random_prompts
from hfbench.models.reference import resolve

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
    sizes = sorted(set(sizes), reverse=True)
    gpu = find_device(device)
    location = resolve(model)
    folder = location.folder
    refuse_broken(location, with_text=False)
    stay_offline()
    import_libraries(run)
    from hfbench.gpu.graphs.step import DecodeStep
    from hfbench.gpu.graphs.verify import verify

    used = pin_threads(threads)
    config = read_config(folder)
    length, limit = prompt + 1 + steps, context_length(config)
    if limit is not None and length > limit:
        raise UsageError(
            f"a prompt of {prompt}, a token to warm up and {steps} steps exceed the context of {limit}",
            where=folder,
            remedy="lower prompt or steps",
        )
    run.progress("load", 0, 1)
    loaded = load_model(folder, gpu=gpu, dtype=dtype, attention=attention)
    run.progress("load", 1, 1)
    tolerance, recorder = tolerance_of(loaded.dtype), recorder_for(loaded.device)
    run.log(f"capturing batch {', '.join(map(str, sizes))} with a {recorder.kind}")
    known, special = ordinary_vocabulary(config, load_tokenizer(folder))

    def prompts(batch: int) -> Any:
        import torch

        rows = random_prompts(vocabulary=known, special=special, length=length, batch=batch, seed=seed + batch)
        return torch.tensor(rows, dtype=torch.long, device=loaded.device)

    with translated(model, "the model failed while its decode step was verified", "try fewer or smaller batches"):
        checked = verify(
            sizes,
            lambda batch: DecodeStep(loaded.model, loaded.device, batch=batch, room=room_for(prompt, steps)),
            recorder=recorder,
            prompts=prompts,
            steps=steps,
            tolerance=tolerance,
            watch=lambda done, total: run.progress("verify", done, total),
        )
    return Report(
        folder=str(folder),
        device=str(loaded.device),
        device_name=gpu.name if gpu else platform.machine(),
        dtype=loaded.dtype,
        attention=attention,
        capture=recorder.kind,
        prompt_tokens=prompt,
        threads=used,
        tolerance_eager=tolerance.eager,
        tolerance_no_cache=tolerance.no_cache,
        tolerance_reason=tolerance.reason,
        sizes=checked,
    )
