"""What the Convert screen makes of what it knows: jobs of other folders, and how far a proof is to reach."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hfbench.jobs.state import State
from hfbench.screens.convert_view import ConvertView
from hfbench.screens.convert_wish import Source, Wish
from hfbench.widgets.wall_lines import Doing

MODEL = Source(reference="/m", name="m", place=Path("/"))
VIEW = ConvertView(source=MODEL, wish=Wish(source=MODEL, tp=2), environments=("mcore",))


def test_a_proof_of_another_folder_is_named_while_it_goes_on_and_gone_when_it_is_over() -> None:
    about = ("/m", "/m-megatron-tp1")
    live = Doing(job="1", action="verify", about=about, state=State.RUNNING)
    scene = replace(VIEW, proof=live).scene()
    assert (scene.proof, scene.proven_elsewhere) == (live, "/m-megatron-tp1")
    assert replace(VIEW, proof=replace(live, state=State.FINISHED)).scene().proof is None
    here = replace(live, about=("/m", "/m-megatron-tp2"))
    assert replace(VIEW, proof=here).scene().proven_elsewhere == ""


def test_a_conversion_into_another_folder_is_named_while_it_goes_on() -> None:
    live = Doing(job="1", action="convert.megatron", about=("/elsewhere",), state=State.RUNNING)
    assert replace(VIEW, conversion=live).scene().made_elsewhere == "/elsewhere"
    assert replace(VIEW, conversion=replace(live, about=("/m-megatron-tp2",))).scene().made_elsewhere == ""


def test_a_proof_reaches_all_walls_then_megatron_core_then_the_weights_alone() -> None:
    seen, view = [], VIEW
    for _ in range(4):
        seen.append((len(view.walls), view.environment))
        view = replace(view, reach=view.next_reach)
    assert seen == [(3, ""), (3, "mcore"), (1, ""), (3, "")]
    assert replace(VIEW, reach="mcore", lacking=("torch",)).environment == ""
    safetensors = replace(VIEW, reach="mcore", wish=Wish(source=MODEL, format="safetensors"))
    assert (len(safetensors.walls), safetensors.environment) == (3, "")
    assert VIEW.wish is not None
    assert VIEW.wish.proof(("weights",), "mcore")["environment"] == "mcore"
