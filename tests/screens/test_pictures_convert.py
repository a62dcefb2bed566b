"""The Convert screen as pictures: a layout refused, a conversion under way, a proof that found something."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW, Held, make_job
from picture_models import llama
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.actions.convert_megatron import ConvertMegatron
from hfbench.actions.results import result_data
from hfbench.actions.verify import VerifyResult
from hfbench.convert.walls.results import Difference, ForwardWall, TaskWall, Walls, WeightsWall
from hfbench.jobs.events import Event, Finished, Progress, Running, Started
from hfbench.jobs.run import Run
from hfbench.screens.convert import ConvertScreen
from hfbench.units import GIB

BEGUN: list[Event] = [Started(at=NOW - 20, pid=1, ticks=1, host="lab-3"), Running(at=NOW - 19)]
SMALL, LARGE, BARE = (LOOKS[number].values for number in (0, 1, 3))


async def opened(pilot: Pilot[None], until: Any, model: Path) -> ConvertScreen:
    app: Any = pilot.app
    app.open_convert(str(model))
    await until(pilot, lambda: isinstance(app.screen, ConvertScreen) and app.screen.at_rest, 120)
    screen: ConvertScreen = app.screen
    return screen


def conversion(model: Path) -> tuple[dict[str, Any], Any]:
    """The fields of a conversion to TP 3, PP 2, and its result as if it had taken 1.6 s."""
    request = ConvertMegatron(model=str(model), out=model.parent / f"{model.name}-megatron-tp3-pp2", tp=3, pp=2)
    params = ConvertMegatron.spec.values(request)  # type: ignore[attr-defined]
    found = replace(request, dry_run=True).perform(Run())
    return params, replace(found, dry_run=False, seconds=1.6)


def proof(params: dict[str, Any]) -> tuple[dict[str, Any], VerifyResult]:
    """A proof whose first wall found a tensor that is not what it should be."""
    differs = Difference(
        tensor="mp_rank_01_000:decoder.layers.1.self_attention.linear_qkv.weight",
        kind="values",
        found="element 64 (row 0, column 64) is 0.0135 and should be -0.0271",
        elements=12_288,
    )
    weights = WeightsWall(verdict="differs", tensors=81, bytes=GIB // 8, seconds=0.2, differences=(differs,))
    forward = ForwardWall(verdict="differs", max_abs=0.66, relative=0.031, top5=0.91, positions=176)
    walls = Walls(weights=weights, forward=forward, task=TaskWall(verdict="could not", reason="no tokenizer"))
    asked = {"model": params["model"], "converted": params["out"], "walls": ["weights", "forward", "task"]}
    return asked, VerifyResult(
        verdict="differs",
        walls=walls,
        reference=params["model"],
        converted=params["out"],
        format="torch",
        layout="TP 3, PP 2, EP 1",
        family="llama",
        seconds=4.0,
        reports=("/jobs/verify/artifacts/verify.md",),
    )


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
def test_refused(take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
    model = llama(place / "models" / "smollm2-135m", layers=30, shards=1)

    async def scene(pilot: Pilot[None]) -> None:
        screen = await opened(pilot, until, model)
        await pilot.press("t")
        await until(pilot, lambda: screen.at_rest)
        assert screen.view.refusal is not None
        assert "9 attention heads" in str(screen.view.refusal)

    take(look, scene)


@pytest.mark.parametrize("look", [SMALL, LARGE], ids=["80x24-dark", "120x40-light"])
def test_converting(take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
    model = llama(place / "models" / "smollm2-135m", layers=30, shards=1)
    params, _ = conversion(model)
    moved = [Progress(at=NOW - 10 + n * 4, phase="convert", done=n * 2 * GIB, total=8 * GIB, unit="B") for n in (0, 1)]
    held = Held(make_job(place / "home" / "jobs", "cccc01", "convert.megatron", params, [*BEGUN, *moved], age=20))

    async def scene(pilot: Pilot[None]) -> None:
        screen = await opened(pilot, until, model)
        await until(pilot, lambda: screen.view.made is not None and screen.view.wish == screen.view.planned)
        assert screen.view.wish is not None
        assert (screen.view.wish.tp, screen.view.wish.pp) == (3, 2)

    try:
        take(look, scene)
    finally:
        held.release()


@pytest.mark.parametrize("look", [SMALL, LARGE, BARE], ids=["80x24-dark", "120x40-light", "80x24-monochrome"])
def test_proof_that_differs(take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
    model = llama(place / "models" / "smollm2-135m", layers=30, shards=1)
    params, written = conversion(model)
    asked, found = proof(params)
    done = [*BEGUN, Finished(at=NOW - 5, seconds=1.6)]
    for tail, action, fields, result in (
        ("cccc01", "convert.megatron", params, written),
        ("cccc02", "verify", asked, found),
    ):
        make_job(place / "home" / "jobs", tail, action, fields, done, age=20, result=result_data(result))

    async def scene(pilot: Pilot[None]) -> None:
        screen = await opened(pilot, until, model)
        await until(pilot, lambda: screen.view.proven is not None and screen.view.wish == screen.view.planned)
        await pilot.press("tab")

    take(look, scene)
