"""`hfbench verify`: verdicts, exit codes and reports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faulty import write_megatron
from tiny_models import make_tiny

from hfbench.actions.convert_megatron import ConvertMegatron
from hfbench.actions.verify import Verify
from hfbench.convert.walls.report import wall_lines
from hfbench.convert.walls.results import OWN_PASS, Core, Fact, ForwardWall, TaskWall, Walls, WeightsWall
from hfbench.convert.walls.verify import judged, prove
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.jobs.run import Run

Hfbench = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    return make_tiny("llama", tmp_path_factory.mktemp("source") / "llama")


def test_right_checkpoint_is_proven_and_reported(source: Path, hfbench: Hfbench, tmp_path: Path) -> None:
    made = write_megatron(source, tmp_path / "mg", tp=2, pp=2)
    ended = hfbench("verify", source, made, "--walls", "weights", "--json")
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["verdict"] == "proven"
    assert told["walls"]["weights"]["tensors"] == 54
    assert {"max_abs", "relative", "top5", "first_difference"} <= set(told["walls"]["forward"])
    assert (told["walls"]["forward"]["verdict"], told["format"]) == ("not asked", "torch")
    page, table = (Path(each) for each in told["reports"])
    text = page.read_text()
    assert text.startswith("# Conversion proven")
    assert f"hfbench verify {source} {made} --walls weights" in text
    assert "the vocabulary of 250 is padded to 256" in text
    assert json.loads(table.read_text())["environment"]["python"]


def test_wrong_checkpoint_exits_with_1_and_names_the_tensor(source: Path, hfbench: Hfbench, tmp_path: Path) -> None:
    made = write_megatron(source, tmp_path / "mg", tp=2, fault="one_bit", rotary_base=10000)
    ended = hfbench("verify", source, made, "--walls", "weights")
    assert ended.returncode == 1
    said = " ".join(ended.stdout.split())  # lines are broken between words
    assert "differs: weights" in said
    assert re.search(r" report \S+/artifacts/verify\.md ", said)
    assert "mp_rank_01:decoder.layers.0.mlp.linear_fc2.weight: element [3, 5] is " in said
    assert "rotary_base is 10000, rope_theta means 500000" in said


def test_what_cannot_be_told_exits_with_2(source: Path, hfbench: Hfbench, tmp_path: Path) -> None:
    made = write_megatron(source, tmp_path / "mg")
    next(made.rglob("*.pt")).write_bytes(b"PK not any more")
    ended = hfbench("verify", source, made, "--walls", "weights")
    assert ended.returncode == 2
    assert "could not: weights" in ended.stdout


def test_two_megatron_checkpoints_are_refused(source: Path, tmp_path: Path) -> None:
    made = write_megatron(source, tmp_path / "mg")
    with pytest.raises(UsageError, match="both are Megatron checkpoints"):
        prove(str(made), made, Run(), walls=("weights",))


def test_what_was_converted_may_lie_in_the_cache(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "cache" / "models--org--again"
    shutil.copytree(source, repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    proof = prove(str(source), Path("org/again"), Run(), walls=("weights",))
    assert (proof.verdict, proof.converted) == ("proven", str(repo / "snapshots" / commit))
    with pytest.raises(HfbenchError, match="org/other"):
        prove(str(source), Path("org/other"), Run(), walls=("weights",))


def test_the_family_told_is_that_of_what_was_converted(source: Path, tmp_path: Path) -> None:
    made = tmp_path / "mg"
    ConvertMegatron(model=str(source), out=made).perform(Run())
    assert prove(str(source), made, Run(), walls=()).family == "llama"
    config = json.loads((source / "config.json").read_text())
    other = tmp_path / "other"
    shutil.copytree(source, other)
    (other / "config.json").write_text(json.dumps({**config, "model_type": "mistral", "sliding_window": None}))
    assert prove(str(other), made, Run(), walls=()).family == "llama by its arguments, mistral by the reference"


def test_environments(source: Path, tmp_path: Path) -> None:
    """A name that is not configured, a path that is none, and a Python without megatron-core."""
    made = write_megatron(source, tmp_path / "mg")

    def asked(environment: str) -> None:
        prove(str(source), made, Run(), walls=("forward",), environment=environment)

    with pytest.raises(UsageError, match=r"no environment is called 'megatron'.*\[environments.megatron\]"):
        asked("megatron")
    with pytest.raises(MissingError, match="there is no Python that can be run"):
        asked(str(tmp_path / "python"))
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # without any installed package
    bare.chmod(0o755)
    with pytest.raises(MissingError, match=r"has no megatron-core and torch .*No module named 'megatron'"):
        asked(str(bare))


def test_environment_is_found_by_its_name(source: Path, home: Path, tmp_path: Path) -> None:
    from hfbench.convert.walls.core import python_of
    from hfbench.paths import config_file

    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 0.16.1\n")
    python.chmod(0o755)
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(f'[environments.megatron]\npython = "{python}"\n')
    assert python_of("megatron") == python


def test_model_and_checkpoint_in_the_wrong_order_are_told(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such file or folder\. Give the model first, then the folder"):
        prove(str(source), tmp_path / "demo", Run(), walls=("weights",))


def test_the_forward_wall_says_by_what_it_is_proven() -> None:
    def said(wall: ForwardWall) -> str:
        return " ".join(" ".join(wall_lines(Walls(weights=WeightsWall(), forward=wall, task=TaskWall()))).split())

    proven = ForwardWall(verdict="proven", positions=176, top5=1.0, by=OWN_PASS)
    assert "hfbench's own pass: no difference at all, top-5 100.0% of 176 positions" in said(proven)
    assert "megatron-core itself was not asked: --environment names" in said(proven)
    core = Core(verdict="proven", version="0.16.1", tp=1, pp=1, max_abs=1e-7, relative=1e-7, top5=1.0)
    assert "was not asked" not in said(replace(proven, core=core))
    assert "megatron-core" not in said(replace(proven, by="transformers"))


def test_walls_that_cannot_run_other_arguments_point_to_them() -> None:
    def broken() -> ForwardWall:
        raise HfbenchError("IndexError: out of bounds")

    weights = WeightsWall(
        verdict="differs", facts=(Fact(argument="num_layers", expected="30", found="4", key="num_hidden_layers"),)
    )
    assert judged(ForwardWall(), broken, weights).reason.startswith("the arguments are not those of the model, see ")
    assert judged(ForwardWall(), broken, WeightsWall()).reason == "IndexError: out of bounds"


@pytest.mark.parametrize(
    ("weights", "forward", "verdict"),
    [
        ("proven", "proven", "proven"),
        ("proven", "not asked", "proven"),
        ("proven", "could not", "could not"),
        ("differs", "could not", "differs"),
        ("not asked", "not asked", "could not"),
    ],
)
def test_verdict_of_all_walls(weights: str, forward: str, verdict: str) -> None:
    walls = Walls(
        weights=WeightsWall(verdict=weights),  # type: ignore[arg-type]
        forward=ForwardWall(verdict=forward),  # type: ignore[arg-type]
        task=TaskWall(),
    )
    assert walls.verdict == verdict


def test_defaults_ask_for_all_walls() -> None:
    assert Verify(model="m", converted=Path("c")).walls == ("weights", "forward", "task")
