"""The Engines screen: verdicts with their reasons, the page of one engine, its forms, and lists that stay fresh."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_toys import manifest_of
from job_folders import make_job

from hfbench.config import Config, EnginesConfig
from hfbench.engines import compatibility
from hfbench.engines.check import How, check_engine
from hfbench.engines.jobs import folder_of
from hfbench.engines.listing import Listed
from hfbench.engines.machine import read_machine
from hfbench.engines.manifest import MANIFEST, Compat, Layout, Manifest, Proof, ProofCase, ShapeProfile, Source
from hfbench.engines.manifest import write_manifest as write
from hfbench.engines.trial.remembered import Trials
from hfbench.engines.trial.told import Trial
from hfbench.jobs.events import Finished, Running, Started
from hfbench.jobs.history import History
from hfbench.paths import config_file, jobs_root
from hfbench.screens.attached import stops_of
from hfbench.screens.engines import EnginesScreen, EngineTable
from hfbench.screens.engines_jobs import EngineJobsRead, read_jobs
from hfbench.screens.engines_page import EngineScreen
from hfbench.screens.engines_recipe import bench_values, rebuild_values
from hfbench.screens.job import JobScreen
from hfbench.screens.kept import Left, Stop
from hfbench.screens.launch import LaunchScreen
from hfbench.widgets.engine_rows import BY_KEY, EngineJob, _head, by_key, short_shapes
from hfbench.widgets.log_view import LogView

CASE = ProofCase(
    batch=1, prompt=8, steps=8, max_abs=2e-5, relative=4e-6, argmax_agreement=1.0, greedy_equal=True, finite=True
)
PROVEN = Proof(verdict="proven", cases=(CASE,), tolerance=3e-5, dtype="fp32", device="cpu")

ENDED = (Started(at=1, pid=1, ticks=1, host="x"), Running(at=2, device="cpu"), Finished(at=3, seconds=1))

MakeEngine = Callable[..., Path]


@pytest.fixture
def make_engine(tmp_path: Path) -> MakeEngine:
    """Write an engine of this machine's CPU with a build log. Its one file is no package: it is never loaded."""

    def make(name: str, root: str = "engines", **fields: Any) -> Path:
        folder = tmp_path / root / name
        folder.mkdir(parents=True)
        built = replace(read_machine(gpus=False).built_on(), gpu=None)
        (folder / "build.log").write_text("  0.0  exporting forward\n  9.9  proven\n")
        told = {"built_on": built, "proof": PROVEN, "log": "build.log", "source": Source(given="./tiny")}
        write(folder, manifest_of(folder, **(told | fields)))
        return folder

    return make


def edit(folder: Path) -> None:
    """Change a field behind the back of the manifest's seal."""
    told = json.loads((folder / MANIFEST).read_text())
    told["shapes"]["context"] += 1
    (folder / MANIFEST).write_text(json.dumps(told))


def config(tmp_path: Path) -> Config:
    return Config(engines=EnginesConfig(roots=(str(tmp_path / "engines"),)))


async def opened(pilot: Any, until: Any) -> EngineTable:
    """The list, read."""
    await pilot.press("5")
    await until(pilot, lambda: isinstance(pilot.app.screen, EnginesScreen) and pilot.app.screen._listed)
    table: EngineTable = pilot.app.screen.query_one(EngineTable)
    return table


def text(picture: Any, pilot: Any) -> str:
    return "\n".join(picture(pilot))


async def test_every_engine_has_a_verdict_here_and_the_first_reason_and_a_page(
    bench: Any, until: Any, picture: Any, toasts: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    good = make_engine("good")
    edit(make_engine("edited"))
    (make_engine("torn") / MANIFEST).write_text('{"schema": 1')
    async with bench(config=config(tmp_path)).run_test(size=(80, 24), notifications=True) as pilot:
        table = await opened(pilot, until)
        rows = {table.rows[n].cells["engine"]: table.rows[n].cells for n in range(table.shown)}
        assert {name: cells["verdict"] for name, cells in rows.items()} == {
            "edited": "x will not load",
            "good": "~ cannot tell",
            "torn": "x damaged",
        }
        assert rows["edited"]["why"].startswith("the manifest was edited after the engine was built")
        assert "nobody has hashed" in rows["good"]["why"]
        assert rows["torn"]["why"].startswith("line 1, column")
        shown = text(picture, pilot)
        assert all(key in shown for key in ("enter open", "c check", "l load", "b bench", "R rerun", "n new", "q quit"))
        assert "undo the edit, or R builds it again" in shown  # of the row under the cursor
        await pilot.press("slash", *"good", "enter")
        assert table.shown == 1
        await pilot.press("c")
        await until(pilot, lambda: table.rows[0].cells["verdict"] == "ok loads here")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EngineScreen) and pilot.app.screen.result)
        assert "[Verdict]" in text(picture, pilot)
        shown = text(picture, pilot)
        await pilot.press("pagedown")
        shown += text(picture, pilot)
        assert "every file is there, with its size and its SHA-256" in shown
        await pilot.press("right")
        shown = text(picture, pilot)
        assert "ok proven" in shown
        assert "    1       8      8   2.00e-05    4.00e-06  100.0%      same     yes" in shown
        await pilot.press("right")
        assert "as it was written" in text(picture, pilot)
        await pilot.press("right")
        assert pilot.app.screen.query_one(LogView).tail(9) == ["  0.0  exporting forward", "  9.9  proven"]
        await pilot.press("y")
        await until(pilot, lambda: f"{len(str(good))} characters" in " ".join(toasts(pilot).split()), 10)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, EnginesScreen) and table.shown == 3, 10)
        assert table.current == str(good)


async def test_a_check_hashes_every_file_and_the_row_turns(
    bench: Any, until: Any, picture: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    folder = make_engine("one")
    async with bench(config=config(tmp_path)).run_test(size=(120, 40)) as pilot:
        table = await opened(pilot, until)
        before = (folder / "model.pt2").stat()
        (folder / "model.pt2").write_bytes(b"NOT a real package")
        assert (folder / "model.pt2").stat().st_size == before.st_size
        await pilot.press("c")
        await until(pilot, lambda: table.rows[0].cells["verdict"] == "x will not load")
        assert "model.pt2" in table.rows[0].cells["why"]
        assert "model.pt2" in text(picture, pilot)


async def test_keys_open_forms_filled_from_the_manifest_even_before_it_is_read(
    bench: Any, until: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    model = str(tmp_path / "models" / "tiny")
    folder = make_engine("one", source=Source(given="./tiny", folder=model), dtype="bf16")
    async with bench(config=config(tmp_path)).run_test(size=(80, 24)) as pilot:
        await opened(pilot, until)
        await pilot.press("b")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        form = pilot.app.screen.state.values
        asked = {"model": model, "mode": f"engine:{folder}", "batch": 1, "prompt": 8, "new_tokens": 9, "device": "cpu"}
        assert {name: form[name] for name in asked} == asked
        await pilot.press("escape", "R")
        await until(
            pilot, lambda: getattr(pilot.app.screen, "spec", None) and isinstance(pilot.app.screen, LaunchScreen)
        )
        assert pilot.app.screen.spec.name == "engine.build"
        form = pilot.app.screen.state.values
        assert (form["model"], str(form["out"]), form["dtype"], form["replace"]) == (model, str(folder), "bf16", True)
        await pilot.press("escape", "n")
        out = str(tmp_path / "engines" / "tiny-aoti")
        await until(pilot, lambda: _out(pilot) == out)


def _out(pilot: Any) -> str:
    """The folder that the form in front names."""
    return str(pilot.app.screen.state.values["out"]) if isinstance(pilot.app.screen, LaunchScreen) else ""


async def test_an_engine_that_a_job_built_elsewhere_is_there_as_soon_as_the_job_ends(
    bench: Any, until: Any, picture: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    async with bench(config=config(tmp_path), watch=True).run_test(size=(80, 24)) as pilot:
        table = await opened(pilot, until)
        shown = text(picture, pilot)
        assert "no engine yet: n builds one, and so does E on the page of a model" in shown
        assert str(tmp_path / "engines") in "".join(shown.split())  # it may wrap
        folder = make_engine("late", root="elsewhere")
        make_job(jobs_root(), "aaaa01", "engine.build", {"model": "m", "out": str(folder)}, ENDED, result={})
        pilot.app.watchers.look_now()
        await until(pilot, lambda: table.total == 1)
        assert table.current == str(folder)


async def test_a_trial_load_is_a_job_whose_end_stands_beside_the_engine(
    bench: Any, until: Any, picture: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    edit(make_engine("edited"))  # refused by the rules, so that nothing is loaded for this test
    async with bench(config=config(tmp_path), watch=True).run_test(size=(120, 40)) as pilot:
        await opened(pilot, until)
        assert "none yet: l loads it" in " ".join(text(picture, pilot).split())
        await pilot.press("l")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen) and pilot.app.screen.snapshot)
        await until(pilot, lambda: pilot.app.screen.snapshot.state.over)
        await pilot.press("escape")
        await until(pilot, lambda: any(each.state == "error" for each in pilot.app.screen._trials.values()))
        [tried] = pilot.app.screen._trials.values()
        assert tried.text == "will not load: seal"
        assert f"{tried.job})" in text(picture, pilot)


async def test_a_model_has_a_key_that_builds_an_engine_for_it(
    bench: Any, until: Any, make_model: Callable[..., Path], tmp_path: Path
) -> None:
    model = make_model()
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: pilot.app.screen.view.location)
        await pilot.press("E")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        form = pilot.app.screen.state.values
        assert (form["model"], str(form["out"])) == (str(model), "engines/tiny-aoti")


# -- plain parts --------------------------------------------------------------


def plan(**fields: Any) -> Manifest:
    """A manifest of a TensorRT-LLM engine."""
    told: dict[str, Any] = {
        "builder": "trtllm",
        "layout": Layout(world_size=4, tp=2, pp=2),
        "dtype": "fp8",
        "options": {
            "template": "dense-fp8, named by model",
            "gemm_plugin": "fp8 (request)",
            "max_batch_size": "1 (template)",
        },
        "compat": Compat(hardware_level=""),
    }
    return manifest_of(None, **(told | fields))


def test_a_plan_is_built_again_with_its_template_its_ranks_and_what_was_asked_for() -> None:
    values = rebuild_values(plan(), "/srv/plan")
    assert (values["template"], values["set"], values["tp"], values["pp"]) == ("dense-fp8", ("gemm_plugin=fp8",), 2, 2)
    assert (values["dtype"], values["device"], values["out"]) == ("auto", "auto", "/srv/plan")


@pytest.mark.parametrize(
    ("shapes", "prompt", "new"),
    [
        (ShapeProfile(batch=1, min_prompt=1, max_prompt=128, context=256), 128, 64),
        (ShapeProfile(batch=1, min_prompt=1, max_prompt=16, context=18), 16, 3),
        (ShapeProfile(batch=1, min_prompt=1, max_prompt=16, context=17), 16, 2),
    ],
)
def test_a_benchmark_stays_within_the_shapes_of_the_engine(shapes: ShapeProfile, prompt: int, new: int) -> None:
    values = bench_values(plan(shapes=shapes), "/srv/plan")
    assert (values["prompt"], values["new_tokens"]) == (prompt, new)


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"params": {"out": "engines/a"}, "cwd": "/srv"}, "/srv/engines/a"),
        ({"params": {"out": "/x/../a"}, "cwd": "/srv"}, "/a"),
        ({"params": {"out": 7}}, ""),
        ({"params": []}, ""),
        ({}, ""),
    ],
)
def test_the_folder_of_a_request_is_absolute_or_none(request_: dict[str, object], path: str) -> None:
    assert folder_of(request_, "out") == path


def test_a_trial_load_of_before_the_latest_build_tells_nothing_of_the_engine() -> None:
    old = make_job(jobs_root(), "aaaa01", "engine.check", {"engine": "/srv/a", "load": True}, ENDED, age=50)
    make_job(jobs_root(), "aaaa02", "engine.build", {"model": "m", "out": "/srv/a"}, ENDED, age=40, result={})
    told: list[Any] = []
    read_jobs(History(jobs_root()).rows(), lambda: False, told.append)
    assert told == [EngineJobsRead({f"{old.id[:20]}engine.build-aaaa02": "/srv/a"}, {})]
    make_job(jobs_root(), "aaaa03", "engine.check", {"engine": "/srv/a", "load": True}, ENDED, age=30)
    make_job(jobs_root(), "aaaa04", "engine.check", {"engine": "/srv/a"}, ENDED, age=20)
    read_jobs(History(jobs_root()).rows(), lambda: False, told.append)
    assert list(told[-1].trials) == ["/srv/a"]
    assert told[-1].trials["/srv/a"].job == "aaaa03"


@pytest.mark.parametrize(
    ("told", "short"),
    [
        ("batch 1, prompt 1 to 128, context 256", "1 x 1-128 of 256"),
        ("batch 4, prompt 16, context 32", "4 x 16 of 32"),
        ("batch 1 to 8, any prompt", "batch 1 to 8, any prompt"),
        ("", ""),
    ],
)
def test_shapes_fit_into_their_column(told: str, short: str) -> None:
    assert short_shapes(told) == short


async def test_a_folder_of_the_configuration_that_is_not_there_is_told_above_the_list(
    bench: Any, until: Any, picture: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    make_engine("one")
    roots = (str(tmp_path / "engines"), str(tmp_path / "none"))
    async with bench(config=Config(engines=EnginesConfig(roots=roots))).run_test(size=(120, 40)) as pilot:
        await opened(pilot, until)
        seen = text(picture, pilot)
        assert "none: cannot be looked into (No such file or directory)" in " ".join(seen.split())
        assert list(pilot.app.screen.engines) == [str(tmp_path / "engines" / "one")]


async def test_a_trial_load_from_anywhere_stands_beside_the_engine(
    bench: Any, until: Any, picture: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    folder = make_engine("one")
    with Trials() as trials:
        trials.keep(folder, Trial(outcome="crashed", found="it died of SIGILL"), "box")
    async with bench(config=config(tmp_path)).run_test(size=(120, 40)) as pilot:
        await opened(pilot, until)
        await until(pilot, lambda: "crashed: it died of SIGILL" in text(picture, pilot))
        assert "with box)" in text(picture, pilot)


async def test_a_trial_load_of_before_a_change_of_the_files_is_not_shown_as_fine(
    bench: Any, until: Any, picture: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    folder = make_engine("good")
    with Trials() as trials:
        trials.keep(folder, Trial(outcome="loaded", found="loads here"), "")
        assert trials.latest(folder) is not None
        told = (folder / MANIFEST).stat()
        (folder / MANIFEST).write_text((folder / MANIFEST).read_text().replace("tiny", "tinx"))
        assert (folder / MANIFEST).stat().st_size == told.st_size
        assert trials.latest(folder) is None, "the same names and sizes, and another engine"
    job = EngineJob(job="aaaa01", text="loads here", state="ok", at=told.st_mtime)
    listed = Listed(path=str(folder), verdict="loads here", checked=None, changed=told.st_mtime + 1)
    checked = check_engine(folder, How(hashing=False))
    [stale] = [fact for fact in _head(replace(listed, checked=checked), job) if fact.label == "trial load"]
    assert (stale.state, "since its files were changed" in stale.value) == ("unknown", True)
    [fresh] = [fact for fact in _head(replace(listed, checked=checked, changed=0.0), job) if fact.label == "trial load"]
    assert fresh.state == "ok"


def test_remedies_name_keys_where_these_do_what_the_command_does() -> None:
    source = "".join(each.read_text() for each in Path(compatibility.__file__).parent.glob("*.py"))
    for command, key in BY_KEY.items():
        assert command.removeprefix("build it again: ") in source
        assert by_key(f"first {command}, then") == f"first {key}, then"


async def test_u_looks_into_the_folders_that_the_configuration_names_now(
    bench: Any, until: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    make_engine("late", root="elsewhere")
    async with bench(config=config(tmp_path)).run_test(size=(80, 24)) as pilot:
        await opened(pilot, until)
        assert not pilot.app.screen.engines
        config_file().parent.mkdir(parents=True, exist_ok=True)
        config_file().write_text(f"[engines]\nroots = [{json.dumps(str(tmp_path / 'elsewhere'))}]\n")
        await pilot.press("u")
        await until(pilot, lambda: [Path(each).name for each in pilot.app.screen.engines] == ["late"])
        config_file().write_text("[engines]\nroots = 3\n")
        await pilot.press("u")
        assert pilot.app.config.engines.roots == (str(tmp_path / "elsewhere"),), "what is wrong changes nothing"


async def test_the_page_of_an_engine_comes_back_with_its_tab_and_one_that_is_gone_is_told(
    bench: Any, until: Any, toasts: Any, make_engine: MakeEngine, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    path = str(make_engine("good"))
    page = Stop("EngineScreen", {"engine": path, "tab": "Proof"})
    app = bench(config=config(tmp_path))
    app.left = Left((Stop("engines"), page))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, EngineScreen) and app.screen.result)
        assert stops_of(app)[1:] == (Stop("engines"), page)
    gone = bench(config=config(tmp_path))
    gone.left = Left((Stop("engines"), Stop("EngineScreen", {"engine": f"{path}-gone"})))
    async with gone.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "the engine is gone" in toasts(pilot))
        assert isinstance(gone.screen, EnginesScreen)
