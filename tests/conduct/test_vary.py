"""An action whose fields vary becomes a script that means the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.actions.base import InvalidParams
from hfbench.actions.registry import actions, find
from hfbench.conduct.make import slug
from hfbench.conduct.vary import read_vary, sweep_script
from hfbench.errors import UsageError
from hfbench.scripts.check import check
from hfbench.sweeps.folder import NAME

TEXTS = st.lists(
    st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda t: "\0" not in t), min_size=1, unique=True
)


@given(TEXTS, st.lists(st.integers(1, 4096), min_size=1, unique=True))
def test_a_script_with_any_texts_and_numbers_reads_back_the_same_cells(texts: list[str], batches: list[int]) -> None:
    spec = find("bench.generate")
    varied = {"prompt_text": [t for t in texts if t.strip()] or ["x"], "batch": batches}
    source = sweep_script(spec, "any", {"model": "{{ odd }} name", "dtype": "bf16"}, varied).encode()
    found = check(source, Path("any.hfb.yaml"), actions())
    assert found.plan is not None, found.errors
    told = [(step.request.prompt_text, step.request.batch) for _, step in found.plan]  # type: ignore[attr-defined]
    assert told == [(text, batch) for text in varied["prompt_text"] for batch in batches]
    assert {step.request.model for _, step in found.plan} == {"{{ odd }} name"}  # type: ignore[attr-defined]


def test_values_are_read_by_the_declaration_of_their_field() -> None:
    told = read_vary(find("bench.generate"), ["batch=1..8*2", "dtype=bf16,fp32", "ci=0.01,0.02", "budget=1m,30"])
    assert told == {"batch": (1, 2, 4, 8), "dtype": ("bf16", "fp32"), "ci": (0.01, 0.02), "budget": (60.0, 30.0)}


def test_a_value_that_is_wrong_by_itself_or_beside_others_is_refused() -> None:
    spec = find("bench.generate")
    with pytest.raises(UsageError, match="bf17"):
        read_vary(spec, ["dtype=bf16,bf17"])
    with pytest.raises(InvalidParams, match="batch"):
        sweep_script(spec, "x", {"model": "m", "batch": 0}, {"prompt": [1, 2]})


@given(st.text())
def test_any_text_makes_a_name_that_a_folder_may_have(text: str) -> None:
    assert NAME.fullmatch(slug(text))


def test_the_place_a_form_names_stands_in_its_script_and_several_in_a_comment() -> None:
    spec = find("bench.generate")

    def script(*on: str) -> str:
        return sweep_script(spec, "x", {"model": "m"}, {"batch": [1, 2]}, on=on)

    found = check(script("slurm:gpu").encode(), Path("any.hfb.yaml"), actions())
    assert found.plan is not None, found.errors
    assert {step.on for _, step in found.plan} == {"slurm:gpu"}
    assert script("local") == script()
    several = script("local", "ssh:box 2")
    assert several == "# over several places: hfbench sweep run FILE --on local --on 'ssh:box 2'\n" + script()
    assert check(several.encode(), Path("any.hfb.yaml"), actions()).plan is not None
