"""Wall two: logits on fixed prompts, against transformers, by our own forward pass and by megatron-core."""

from __future__ import annotations

import random
import time
from pathlib import Path

from hfbench.convert.walls.asking import Judging
from hfbench.convert.walls.core import core_wall
from hfbench.convert.walls.results import OWN_PASS, Core, ForwardWall, Parting, worst
from hfbench.convert.walls.sides import Sides
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run

LIMIT = 1e-4
"""Of the largest logit: right conversions differ by 1e-6, a wrong norm epsilon by 1e-3."""
LENGTHS = (24, 24, 128)
"""Tokens of the prompts; positions that are scaled wrongly part further the longer a prompt is."""


def forward_wall(judging: Judging, sides: Sides, run: Run, python: Path | None = None) -> ForwardWall:
    """Compare the logits of both sides; where they part, also the first layer and tensor that do."""
    began = time.perf_counter()
    told = judging.ask("open", **sides.opening())
    sequences = prompts(told["vocab"], told["context"])
    try:
        found = judging.ask("forward", sequences=sequences, limit=LIMIT)
    except HfbenchError as error:
        if not sides.megatron or "no tensor" not in error.found:
            raise
        return ForwardWall(verdict="differs", reason=str(error), seconds=time.perf_counter() - began)
    core: Core | None = None
    if python and sides.megatron:
        core = core_wall(judging, sides.facts, sequences, python, LIMIT, run)
    first = found["first_difference"]
    right = found["relative"] < LIMIT and found["top5"] == 1.0 and not found["unequal_copies"]
    return ForwardWall(
        verdict=worst(["proven" if right else "differs", core.verdict if core else "not asked"]),
        reason=reason_of(found),
        max_abs=found["max_abs"],
        relative=found["relative"],
        top5=found["top5"],
        positions=found["positions"],
        first_difference=Parting(**{**first, "layers": tuple(first["layers"])}) if first else None,
        unequal_copies=tuple(found["unequal_copies"]),
        by=OWN_PASS if sides.megatron else "transformers",
        core=core,
        seconds=time.perf_counter() - began,
    )


def prompts(vocab: int, context: int) -> list[list[int]]:
    """Token numbers that are the same on every machine; the first begins with the last of the vocabulary."""
    source = random.Random(0)
    found = [[source.randrange(vocab) for _ in range(min(length, context))] for length in LENGTHS]
    found[0][0] = vocab - 1
    return found


def reason_of(found: dict[str, object]) -> str:
    """What stands against the wall, where it is not the logits."""
    copies = found["unequal_copies"]
    if isinstance(copies, list) and copies:
        return f"ranks hold other copies of {', '.join(copies[:3])}"
    return ""
