"""engine.machine and checks for machines that are described or supposed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_toys import built_on, machine_like

from hfbench.engines.described import supposed
from hfbench.errors import UsageError

Hfbench = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.usefixtures("torchlike")


@pytest.fixture
def described(hfbench: Hfbench, tmp_path: Path) -> Path:
    """This machine in a file, as a shell writes it."""
    path = tmp_path / "here.json"
    path.write_text(hfbench("engine", "machine", "--json").stdout)
    return path


def edited(path: Path, **versions: Any) -> Path:
    told = json.loads(path.read_text())
    told["machine"]["versions"] |= versions
    path.write_text(json.dumps(told))
    return path


def verdict(hfbench: Hfbench, *words: str | Path) -> tuple[int, str]:
    done = hfbench("engine", "check", *words, "--json")
    return done.returncode, json.loads(done.stdout)["headline"] if done.stdout else done.stderr


def test_an_engine_loads_on_its_own_machine_as_a_file_tells_it(hfbench: Hfbench, engine: Path, described: Path) -> None:
    assert verdict(hfbench, engine, "--machine", described) == (0, "loads here")
    assert "here.json tells it" in " ".join(hfbench("engine", "check", engine, "--machine", described).stdout.split())


def test_it_is_refused_for_a_machine_that_lacks_what_it_needs(hfbench: Hfbench, engine: Path, described: Path) -> None:
    other = edited(described, isa=["sse2"], isa_level="", torch="2.9.1")
    assert verdict(hfbench, engine, "--machine", other) == (1, "will not load: cpu-isa, torch")


@pytest.mark.parametrize(
    ("facts", "code", "told"),
    [
        ("torch=2.12.9", 1, "will not load: torch"),
        ("torch=2.14.0", 2, "cannot tell: torch"),
        ("torch=", 1, "will not load: torch"),
        ("isa=sse2", 1, "will not load: cpu-isa"),
        ("machine=aarch64,platform=darwin", 1, "will not load: platform, machine"),
        ("torch=2.13.7", 0, "loads here"),
    ],
)
def test_a_fact_is_supposed_in_place_of_the_machines_own(
    hfbench: Hfbench, engine: Path, facts: str, code: int, told: str
) -> None:
    assert verdict(hfbench, engine, "--suppose", facts) == (code, told)


def test_what_is_only_supposed_is_not_to_be_loaded(hfbench: Hfbench, engine: Path) -> None:
    told = " ".join(hfbench("engine", "check", engine, "--suppose", "torch=2.14.0").stdout.split())
    assert "only a load on such a machine tells" in told.lower()
    assert "try it with --load" not in told.lower()


def test_features_can_be_taken_away_by_their_beginning() -> None:
    here = machine_like(built_on(isa=("avx", "avx2", "avx512f", "avx512vl", "fma"), isa_level="avx512"))
    without = supposed(here, ["isa=-avx512* -fma"]).versions
    assert (without.isa, without.isa_level) == (("avx", "avx2"), "avx2")
    assert supposed(here, ["isa="]).versions.isa == ()
    assert supposed(here, ["isa=avx avx2 -avx2"]).versions.isa == ("avx",)


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("torc=2", "nothing of a machine is called 'torc'. Did you mean 'torch'?"),
        ("colour=red", "Facts are python, torch"),
        ("torch", "'torch' supposes no value. Write for example torch=2.9.1"),
        ("=2", "nothing of a machine is called ''"),
    ],
)
def test_a_fact_that_is_none_is_refused(fact: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        supposed(machine_like(built_on()), [fact])
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (None, 1, "not there"),
        ("{", 1, "the text ends too early. On that machine: hfbench engine machine --json > FILE"),
        ("[]", 1, "object"),
        ("{}", 2, "describes no machine"),
        ('{"hfbench_machine": 99}', 1, "is of schema 99, this hfbench reads up to 1"),
        ('{"hfbench_machine": 1}', 1, "host is missing"),
        ('{"hfbench_machine": true, "host": "x"}', 1, "hfbench_machine is true, not a whole number"),
    ],
)
def test_a_file_that_describes_no_machine_is_a_sentence(
    hfbench: Hfbench, engine: Path, tmp_path: Path, content: str | None, code: int, told: str
) -> None:
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content)
    done = hfbench("engine", "check", engine, "--machine", path)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--load", "--suppose", "torch=1"), "an engine is loaded by this machine as it is"),
        (("--environment", "here"), "the file of a machine holds the versions of one Python"),
    ],
)
def test_what_cannot_be_asked_together_is_refused(
    hfbench: Hfbench, engine: Path, described: Path, words: tuple[str, ...], told: str
) -> None:
    more = () if "--suppose" in words else ("--machine", described)
    done = hfbench("engine", "check", engine, *words, *more)
    assert (done.returncode, told in done.stderr) == (2, True)
