"""Shapes that are offered are shapes the engine takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hfbench.engines.fitting import fitting, fitting_options
from hfbench.engines.manifest import ShapeProfile
from hfbench.engines.running.decoder import refuse_shape

LENGTHS = st.integers(1, 300)
ENDS = st.tuples(LENGTHS, LENGTHS, LENGTHS).map(sorted)


@given(ENDS, st.integers(1, 4), st.none() | LENGTHS, st.integers(2, 300))
def test_what_fits_is_taken_by_the_engine(ends: list[int], batch: int, prompt: int | None, new: int) -> None:
    least, most, context = ends[0], ends[1], ends[2] + 1
    shapes = ShapeProfile(batch=batch, min_prompt=least, max_prompt=most, context=context)
    told = fitting(shapes, prompt, new)
    refuse_shape(shapes, (told["batch"], told["prompt"]), told["new_tokens"], "engine")
    assert told["new_tokens"] >= 2
    if prompt is not None and least <= prompt <= most and prompt + new - 1 <= context:
        assert (told["prompt"], told["new_tokens"]) == (prompt, new)


def test_options_name_what_a_command_takes() -> None:
    shapes = ShapeProfile(batch=2, min_prompt=1, max_prompt=16, context=32)
    assert fitting_options(shapes, 128, 64) == "--prompt 16 --new-tokens 17 --batch 2"
    assert fitting_options(shapes, None, 64) == "--new-tokens 17 --batch 2"
