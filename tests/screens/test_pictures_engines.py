"""Engines as pictures: a list of every verdict, one engine rule by rule, and its proof. All engines are made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_toys import built_on, manifest_of
from test_engines import PROVEN
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.actions.engine_show import ShowResult
from hfbench.engines.checked import Checked
from hfbench.engines.compatibility.rule import Row
from hfbench.engines.listing import Listed
from hfbench.engines.reading.found import facts
from hfbench.screens.engines import EnginesScreen, EngineTable
from hfbench.screens.engines_asks import EngineShown, EnginesListed
from hfbench.screens.engines_page import EngineScreen
from hfbench.widgets.engine_rows import EngineJob

CAPABILITY = Row(
    id="compute-capability",
    field="built_on.gpu.compute_capability",
    status="mismatch",
    built="9.0",
    here="8.9",
    rule="a plan runs on the compute capability it was built on, unless it was built for a level",
    found="it was built for compute capability 9.0, this GPU has 8.9",
    remedy="build it on this GPU",
)
TORCH = Row(
    id="torch",
    field="built_on.torch",
    status="ok",
    built="2.13.0+cu130",
    here="2.13.0+cu130",
    rule="a package calls into the libraries of the torch it was built with",
)
FILES = Row(
    id="files", field="files", status="ok", built="3 files, 516 MiB", here="the same", rule="every file is there"
)
DRIVER = Row(
    id="driver",
    field="built_on.driver",
    status="unknown",
    built="580.65.06",
    here="",
    found="the driver here does not tell its version",
    remedy="run nvidia-smi",
)


def listed(name: str, verdict: Any, kind: str, rules: tuple[Row, ...], target: str, shapes: str) -> Listed:
    path = f"/srv/engines/{name}"
    checked = Checked(
        verdict=verdict,
        engine=path,
        kind=kind,
        what=f"{kind} engine",
        manifest=True,
        id="37ece35d4a83",
        built="2026-11-30T22:44:12Z by hfbench 0.6.0",
        bytes=516 * 2**20,
        device="cuda:0 NVIDIA L4, compute capability 8.9",
        proof="proven",
        rules=rules,
        facts=facts(model="./smollm2-135m", built_for=target, dtype="bf16", shapes=shapes),
    )
    return Listed(path=path, verdict=verdict, checked=checked)


SHAPES = "batch 1, prompt 1 to 128, context 256"
PLAN = listed("qwen2-7b-fp8", "will not load", "trtllm", (FILES, CAPABILITY, TORCH), "NVIDIA H100, 9.0", SHAPES)
ENGINES = (
    listed("smollm2-aoti", "loads here", "aoti", (FILES, TORCH), "cpu avx512", SHAPES),
    PLAN,
    listed("minilm-onnx", "cannot tell", "onnx", (FILES, DRIVER), "NVIDIA L4, 8.9", SHAPES),
    Listed(
        path="/srv/engines/torn",
        verdict="damaged",
        trouble="/srv/engines/torn: the text ends too early. Build it again",
    ),
)


def shown(path: str) -> EngineShown:
    proof = replace(PROVEN, cases=(PROVEN.cases[0], replace(PROVEN.cases[0], batch=8, prompt=128)))
    manifest = manifest_of(None, built_on=built_on(), proof=proof)
    return EngineShown(path, ShowResult(folder=path, manifest=manifest, sealed=True, log=("  0.0  built",)))


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a state and look."""

    def test_engines(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            app: Any = pilot.app
            await pilot.press("5")
            await until(pilot, lambda: isinstance(app.screen, EnginesScreen) and app.screen._listed)
            app.screen.shown = {each.path: shown(each.path) for each in ENGINES}
            app.screen._engines_listed(EnginesListed(ENGINES))
            app.screen.shown = {each.path: shown(each.path) for each in ENGINES}
            await pilot.press("down")
            assert app.screen.query_one(EngineTable).current == PLAN.path

        take(look, scene)

    @pytest.mark.parametrize("tab", ["Verdict", "Proof"])
    def test_engine(self, take: Any, until: Any, place: Path, look: Any, tab: str) -> None:  # noqa: F811
        async def scene(pilot: Pilot[None]) -> None:
            app: Any = pilot.app
            app.push_screen(
                EngineScreen(PLAN, shown(PLAN.path), EngineJob(job="aaaa07", text="crashed", state="error"))
            )
            await until(pilot, lambda: isinstance(app.screen, EngineScreen) and app.screen.is_mounted)
            if tab == "Proof":
                await pilot.press("right")

        take(look, scene)
