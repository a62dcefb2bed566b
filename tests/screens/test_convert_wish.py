"""What the Convert screen asks for, as a value: fields of the actions, keys that turn it, jobs that it started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hfbench.actions.registry import find
from hfbench.convert.plan_table import Proposal
from hfbench.screens.convert_wish import FORMATS, Source, Wish, stages_of, wish_of

MODEL = Source(reference="/models/tiny", name="tiny", place=Path("/models"))
CHECKPOINT = Source(reference="/out/tiny-megatron", name="tiny-megatron", place=Path("/out"), megatron=True)

WISHES = {
    "plain": (Wish(source=MODEL), "/models/tiny-megatron-tp1"),
    "divided": (Wish(source=MODEL, tp=4, pp=2, ep=8), "/models/tiny-megatron-tp4-pp2-ep8"),
    "other": (
        Wish(source=MODEL, format="torch_dist", names="local", dtype="bf16"),
        "/models/tiny-megatron-tp1-torch_dist-local-bf16",
    ),
    "uneven": (Wish(source=MODEL, pp=2, stages=(3, None)), "/models/tiny-megatron-pp2"),
    "safetensors": (Wish(source=MODEL, format="safetensors", shards="2GB", head="untie"), "/models/tiny-safetensors"),
    "back": (Wish(source=CHECKPOINT, dtype="fp16", allow=("underflow",)), "/out/tiny-megatron-hf-fp16"),
    "named": (Wish(source=MODEL, out="/elsewhere/x"), "/elsewhere/x"),
}


@pytest.mark.parametrize("name", WISHES)
def test_a_wish_is_a_request_of_its_action_and_is_found_again_by_the_job_it_started(name: str) -> None:
    wish, folder = WISHES[name]
    assert wish.folder == folder
    request = find(wish.action).build(wish.values("/cache"))
    params = find(wish.action).values(request)
    assert params["out"] == folder
    assert params.get("cache_dir") in ("/cache", None)
    assert wish_of(wish.source, wish.action, params) == wish


def test_jobs_about_other_models_and_dry_runs_are_not_taken_for_it() -> None:
    params = Wish(source=MODEL).values()
    assert wish_of(replace(MODEL, reference="/models/other"), "convert.megatron", params) is None
    assert wish_of(MODEL, "convert.megatron", params | {"dry_run": True}) is None


def test_degrees_count_from_one_and_choices_go_round() -> None:
    wish = Wish(source=MODEL)
    assert wish.turned("tp", -1).tp == 1
    assert wish.turned("tp", 1).turned("tp", 1).tp == 3
    assert [wish.turned("format", steps).format for steps in range(4)] == [*FORMATS, FORMATS[0]]
    assert wish.turned("dtype", -1).dtype == "fp32"
    uneven = replace(wish, pp=2, stages=(3, 1))
    assert uneven.turned("pp", 1).stages == (None, None)  # they were those of another number of stages
    assert uneven.turned("tp", 1).stages == (3, 1)


def test_proposed_layouts_are_walked_through_from_the_first() -> None:
    proposals = [
        Proposal(tp=1, pp=1, ep=1, rank_bytes=8, reason=""),
        Proposal(tp=2, pp=2, ep=1, rank_bytes=2, reason=""),
    ]
    wish = Wish(source=MODEL, tp=7)
    first = wish.proposed(proposals, 1)
    assert (first.tp, first.pp) == (1, 1)
    second = first.proposed(proposals, 1)
    assert (second.tp, second.pp) == (2, 2)
    assert second.proposed(proposals, 1) == first
    assert wish.proposed([], 1) is wish


def test_only_keys_that_mean_something_are_offered() -> None:
    def keys(wish: Wish) -> str:
        return "".join(knob.key for knob in wish.knobs())

    assert keys(Wish(source=MODEL)) == "tpefnd"
    assert keys(Wish(source=MODEL, pp=2, dtype="fp16")) == "tpesfnda"
    assert keys(Wish(source=MODEL, format="safetensors")) == "fdmk"
    assert keys(Wish(source=CHECKPOINT)) == "dm"


def test_a_proof_has_the_model_first_whichever_way_it_went() -> None:
    there, back = Wish(source=MODEL).proof(["weights"]), Wish(source=CHECKPOINT).proof(["weights"])
    assert (there["model"], there["converted"]) == ("/models/tiny", "/models/tiny-megatron-tp1")
    assert (back["model"], back["converted"]) == ("/out/tiny-megatron-hf", "/out/tiny-megatron")


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("", (None, None)),
        ("even", (None, None)),
        ("7,8", (7, 8)),
        ("7, -", (7, None)),
        ("7", (7, None)),
        (",8", (None, 8)),
        ("-,8", (None, 8)),
        ("0,8", None),
        ("seven", None),
        ("7,8,9", None),
        ("٧", None),
    ],
)
def test_layers_of_uneven_stages_as_they_are_typed(text: str, stages: object) -> None:
    assert stages_of(text) == stages
