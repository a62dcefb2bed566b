"""engine.build, and engines as modes of bench.generate and bench.modes, as front ends see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.actions.base import InvalidParams
from hfbench.actions.bench_generate import Generate
from hfbench.actions.bench_modes import Modes
from hfbench.actions.engine_build import EngineBuild
from hfbench.actions.schema import action_schema
from hfbench.engines.manifest import read_manifest
from hfbench.errors import UsageError
from hfbench.jobs.run import Run

BUILD, GENERATE, MODES = (each.spec for each in (EngineBuild, Generate, Modes))  # type: ignore[attr-defined]
QUICK = {"device": "cpu", "threads": 1, "warmup": 1, "budget": 0.05, "max_iterations": 8, "ci": 1.0}


def model_of(engine: Path) -> str:
    return read_manifest(engine).source.folder


def test_a_model_and_a_folder_are_all_that_must_be_said() -> None:
    request = BUILD.build({"model": "here", "out": "there"})
    assert (request.builder, request.batch, request.max_prompt, request.context) == ("aoti", 1, 128, 256)  # type: ignore[attr-defined]
    assert BUILD.lease == "device"


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("builder", "tensorrt", "is not one of aoti, compile, onnx, openvino, trtllm"),
        ("batch", 0, "below the least value 1"),
        ("context", 1, "below the least value 2"),
        ("dtype", "int4", "int4"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, told: str) -> None:
    with pytest.raises(InvalidParams, match=told):
        BUILD.build({"model": "here", "out": "there", field: value})


@pytest.mark.parametrize("spec", [GENERATE, MODES])
def test_a_mode_is_a_known_word_or_an_engine_by_its_path(spec: object) -> None:
    name = "mode" if spec is GENERATE else "modes"
    param = spec.param(name)  # type: ignore[attr-defined]
    for right in ("compile", "engine:/some/where", "engine:a b"):
        assert param.parse(f'"{right}"' if param.many else right) == ((right,) if param.many else right)
    for wrong, told in (
        ("engine:", "engine:PATH"),
        ("engin:/some/where", "is not one of eager, static-cache, compile, cudagraph, engine:PATH"),
        ("compil", "did you mean 'compile'"),
    ):
        with pytest.raises(Exception, match=told):
            param.parse(wrong)


def test_the_schema_allows_both_kinds_of_modes() -> None:
    either = action_schema(GENERATE)["properties"]["mode"]["anyOf"]
    assert either == [{"enum": ["eager", "static-cache", "compile", "cudagraph"]}, {"pattern": "^engine:."}]


def test_the_declarations_load_nothing_heavy() -> None:
    code = "import sys, hfbench.actions.engine_build, hfbench.actions.bench_modes; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "numpy", "onnx", "openvino", "textual"} & set(loaded)


def test_an_engine_is_measured_as_a_mode(built_engine: Callable[[str], Path]) -> None:
    engine = built_engine("aoti")
    asked = {"model": model_of(engine), "batch": 2, "prompt": 12, "new_tokens": 8, "mode": f"engine:{engine}", **QUICK}
    made = Generate(**asked).perform(Run())  # type: ignore[arg-type]
    assert made.metrics.tpot.p50 > 0
    assert made.engine is not None
    assert (made.engine.builder, made.engine.verdict, made.dtype) == ("aoti", "proven", "fp32")
    assert made.verified is not None
    assert made.verified.same_tokens == made.verified.of_tokens
    assert any("proven when it was built" in line for line in made.lines())


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"batch": 1}, r"shape \[1, 12\] was given, the engine was built for prompts of shape \[2, 1 to 12\]"),
        ({"prompt": 13}, r"shape \[2, 13\]"),
        ({"new_tokens": 20}, "a context of 24"),
        ({"dtype": "bf16"}, "the engine is in fp32 and the model was loaded as bf16"),
        ({"mode": "engine:/nowhere/at/all"}, "is no folder of an engine"),
    ],
)
def test_an_engine_that_does_not_fit_the_request_is_refused(
    built_engine: Callable[[str], Path], more: dict[str, object], told: str
) -> None:
    engine = built_engine("aoti")
    asked = {"model": model_of(engine), "batch": 2, "prompt": 12, "new_tokens": 8, "mode": f"engine:{engine}", **QUICK}
    with pytest.raises(UsageError, match=told):
        Generate(**{**asked, **more}).perform(Run())  # type: ignore[arg-type]


def test_modes_stand_in_one_table_with_their_ratio_to_eager(built_engine: Callable[[str], Path]) -> None:
    engine = built_engine("aoti")
    modes = ("static-cache", "cudagraph", f"engine:{engine}")
    asked = {"model": model_of(engine), "batch": 2, "prompt": 12, "new_tokens": 8, "modes": modes, **QUICK}
    made = Modes(**asked).perform(Run())  # type: ignore[arg-type]
    assert [row.mode for row in made.rows] == ["eager", *modes]
    assert [row.word for row in made.rows][:3:2] == ["reference", "not run"]
    assert "needs a GPU" in made.rows[2].reason
    assert made.rounds >= 1
    for row in (made.rows[1], made.rows[3]):
        assert row.ratio is not None
        assert row.tpot is not None
        assert row.ratio.n == row.tpot.n == made.rounds
        assert row.verified is not None
    eager = made.rows[0].tpot
    fast = made.rows[3]
    assert eager is not None
    assert fast.tpot is not None
    assert fast.ratio is not None
    assert fast.ratio.samples[0] == fast.tpot.samples[0] / eager.samples[0]
    table = made.lines()
    assert any(line.startswith("engine:aoti") for line in table)
    assert max(map(len, (line for line in table if line.startswith(("mode", "eager", "static"))))) <= 80


def test_eager_alone_is_nothing_to_compare() -> None:
    with pytest.raises(UsageError, match="nothing to compare eager with"):
        Modes(model="here", modes=("eager",)).perform(Run())


EVERY_ACTION = """
import json, sys
from pathlib import Path
from hfbench.actions.registry import actions
from hfbench.jobs.run import Run

model, engine, out = sys.argv[1:]
quick = dict(device="cpu", threads=1, batch=2)
short = dict(prompt=12, new_tokens=8, warmup=0, budget=0.05)
asked = [
    ("engine.build", dict(model=model, out=out, max_prompt=1, context=4, **quick)),
    ("engine.check", dict(engine=out)),
    ("engine.check", dict(engine=out, load=True)),
    ("engine.list", dict(roots=[str(Path(out).parent)])),
    ("engine.show", dict(engine=out)),
    ("engine.machine", {}),
    ("engine.flags", {}),
    ("engine.templates", {}),
    ("engine.recipe", dict(model=model)),
    ("bench.generate", dict(model=model, mode=f"engine:{engine}", **short, **quick)),
    ("bench.modes", dict(model=model, modes=[f"engine:{engine}"], **short, **quick)),
]
known, made = actions(), []
for name, values in asked:
    request = known[name].build(values)
    made.append(request.perform(Run()))
    assert made[-1].headline and (not hasattr(made[-1], "lines") or made[-1].lines())
assert {name for name in known if name.startswith("engine.")} <= {name for name, _ in asked}
assert not {"textual", "rich", "pydantic", "onnx", "openvino"} & set(sys.modules)
built, checked, loaded, *_, timed, _ = made
print(json.dumps([built.verdict, checked.verdict, loaded.trial.outcome, timed.engine.verdict]))
"""


@pytest.mark.slow
def test_every_engine_action_runs_where_only_torch_and_transformers_are_installed(
    worker_python: Path, built_engine: Callable[[str], Path], tmp_path: Path
) -> None:
    engine, made = built_engine("aoti"), tmp_path / "made"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [worker_python, "-P", "-c", EVERY_ACTION, model_of(engine), engine, made]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == ["proven", "loads here", "loaded", "proven"]
    assert read_manifest(made).options["programs"] == "decode"


def test_a_space_in_the_path_of_an_engine_is_typed_and_walks_no_further() -> None:
    from hfbench.widgets.form_state import next_choice

    mode = GENERATE.param("mode")
    assert next_choice(mode, "eager") == "static-cache"
    assert next_choice(mode, "engine:/some/where") is None
