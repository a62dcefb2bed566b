"""The proof of an engine: the same tokens through it and through the eager model, logits of every step compared."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from hfbench.engines.manifest import Proof, ProofCase, ShapeProfile
from hfbench.engines.running.decoder import EngineDecoder
from hfbench.gpu.decoding import Decoder
from hfbench.gpu.graphs.tolerance import tolerance_of
from hfbench.gpu.prompts import ordinary_vocabulary, random_prompts

if TYPE_CHECKING:
    from hfbench.gpu.generate_model import Loaded, Words
    from hfbench.jobs.run import Run

STEPS = 8
"""Decode steps compared after each prompt, where the context has room for them."""
SEED = 20261130
"""Of the prompts, which are the same for every proof of one vocabulary."""


def prove(engine: EngineDecoder, loaded: Loaded, words: Words, run: Run) -> Proof:
    """Compare an engine with the eager model at the shortest and the longest prompt it was built for.

    Both are given eager's tokens, so that one wrong step cannot hide the next; then both decode greedily by themselves.
    """
    import torch

    tolerance = tolerance_of(loaded.dtype).no_cache
    lengths = sorted({engine.shapes.min_prompt, engine.shapes.max_prompt})
    cases = []
    with torch.inference_mode():
        for done, length in enumerate(lengths):
            run.progress("prove", done, len(lengths))
            cases.append(_case(engine, loaded, words, length))
    run.progress("prove", len(lengths), len(lengths))
    why = "; ".join(filter(None, (_fault(case, tolerance) for case in cases)))
    return Proof(
        verdict="differs" if why else "proven",
        cases=tuple(cases),
        tolerance=tolerance,
        dtype=loaded.dtype,
        device=str(loaded.device),
        why=why,
    )


def steps_after(shapes: ShapeProfile, length: int) -> int:
    """Decode steps that are compared after a prompt of a length."""
    return min(STEPS, shapes.context - length)


def _case(engine: EngineDecoder, loaded: Loaded, words: Words, length: int) -> ProofCase:
    import torch

    known, special = ordinary_vocabulary(loaded.model.config.get_text_config(), words)
    rows = random_prompts(vocabulary=known, special=special, length=length, batch=engine.shapes.batch, seed=SEED)
    prompt = torch.tensor(rows, dtype=torch.long, device=loaded.device)
    steps = steps_after(engine.shapes, length)
    eager = Decoder(loaded.model, loaded.device)
    errors = _Errors()
    wanted, cache = eager.forward(prompt, None)
    errors.add(engine.prefill(prompt), wanted)
    tokens = [wanted.argmax(-1, keepdim=True)]
    for _ in range(steps):
        wanted, cache = eager.forward(tokens[-1], cache)
        errors.add(engine.step(tokens[-1]), wanted)
        tokens.append(wanted.argmax(-1, keepdim=True))
    greedy = engine.generate(prompt, steps + 1).output_ids
    return ProofCase(
        batch=engine.shapes.batch,
        prompt=length,
        steps=steps,
        max_abs=errors.worst,
        relative=errors.relative,
        argmax_agreement=errors.alike / errors.positions,
        greedy_equal=greedy == torch.cat(tokens, dim=1).tolist(),
        finite=errors.finite,
        prompt_sha256=hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
    )


class _Errors:
    """The largest difference of logits over all steps, and how often the likeliest token was the same."""

    def __init__(self) -> None:
        self.worst = self.relative = 0.0
        self.alike = self.positions = 0
        self.finite = True

    def add(self, ours: Any, wanted: Any) -> None:
        """Compare the logits of one position (batch x vocabulary)."""
        ours, wanted = ours.float(), wanted.float()
        self.positions += ours.shape[0]
        self.alike += int((ours.argmax(-1) == wanted.argmax(-1)).sum())
        if not bool(ours.isfinite().all() and wanted.isfinite().all()):
            self.finite = False
            return
        apart, scale = float((ours - wanted).abs().max()), float(wanted.abs().max())
        self.worst = max(self.worst, apart)
        self.relative = max(self.relative, apart / scale if scale else apart)


def _fault(case: ProofCase, tolerance: float) -> str:
    """What is wrong at one shape, in a clause; empty when nothing is."""
    place = f"at {case.batch} x {case.prompt}"
    if not case.finite:
        return f"{place} its logits or those of eager are NaN or infinite"
    if not case.relative <= tolerance:
        return f"{place} logits are off by {case.relative:.1e} of the largest, allowed {tolerance:.1e}"
    return ""
