"""The runner of measurements: what holds, what does not, and what is written down. Nothing here takes a time."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
SCRIPTS = sorted(
    path.stem
    for path in BENCH.glob("*.py")
    if path.stem
    not in ("claims", "terminal", "workbench", "make_big_checkpoint", "report", "hub_service", "compare_run")
)


@pytest.fixture
def claims(tmp_path: Path) -> Iterator[ModuleType]:
    """bench/claims.py, writing its records below tmp_path."""
    spec = importlib.util.spec_from_file_location("bench_claims", BENCH / "claims.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.RESULTS = tmp_path / "results"
    yield module
    del sys.modules[spec.name]


def costs(*values: float) -> Callable[[], float]:
    """A measurement that gives these values in turn."""
    given = iter(values)
    return lambda: next(given)


def test_the_value_is_the_ratio_of_the_medians(claims: ModuleType) -> None:
    claim = claims.Claim(name="ratio", sentence="twice", bound=2.0)
    record = claims.run(claim, costs(9, 4, 100), costs(3, 2, 1), rounds=3, warmup=0)
    assert record.value == 9 / 2
    assert not record.holds


def test_without_a_peer_the_bound_is_absolute(claims: ModuleType) -> None:
    claim = claims.Claim(name="absolute", sentence="small", bound=5.0)
    assert claims.run(claim, costs(1, 5, 9), rounds=3, warmup=0).holds
    assert not claims.run(claim, costs(1, 6, 9), rounds=3, warmup=0).holds


def test_rounds_that_warm_up_are_not_kept(claims: ModuleType) -> None:
    claim = claims.Claim(name="warm", sentence="small", bound=1.0)
    record = claims.run(claim, costs(1000, 1, 1), costs(1000, 2, 2), rounds=2, warmup=1)
    assert record.subject == [1, 1]
    assert record.peer == [2, 2]


def test_subject_and_peer_take_turns_and_neither_always_begins(claims: ModuleType) -> None:
    order: list[str] = []

    def measuring(name: str) -> Callable[[], float]:
        return lambda: order.append(name) or 1.0  # type: ignore[func-returns-value]

    claim = claims.Claim(name="turns", sentence="alike", bound=1.0)
    claims.run(claim, measuring("subject"), measuring("peer"), rounds=4, warmup=0)
    pairs = list(zip(order[::2], order[1::2], strict=True))
    assert all(set(pair) == {"subject", "peer"} for pair in pairs)
    assert {pair[0] for pair in pairs} == {"subject", "peer"}


def test_every_run_is_added_to_the_record_with_its_machine(claims: ModuleType) -> None:
    claim = claims.Claim(name="kept", sentence="small", bound=1.0, unit="B")
    for value in (0.5, 2.0):
        claims.run(claim, itertools.repeat(value).__next__, rounds=2, notes={"p95": value})
    first, second = json.loads((claims.RESULTS / "kept.json").read_text())
    assert (first["holds"], second["holds"]) == (True, False)
    assert first["claim"] == {"name": "kept", "sentence": "small", "bound": 1.0, "unit": "B"}
    assert first["notes"] == {"p95": 0.5}
    assert first["machine"]["cores"] > 0
    assert second["subject"] == [2.0, 2.0]


def test_the_verdict_says_what_was_claimed_and_what_came_out(
    claims: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = claims.Claim(name="told", sentence="it is quick", bound=2.0)
    claims.run(claim, costs(3), costs(1), rounds=1, warmup=0)
    assert capsys.readouterr().out == "FAILS: it is quick: 3x (bound 2x)\n"


def test_a_script_ends_with_one_when_a_claim_fails(claims: ModuleType) -> None:
    claim = claims.Claim(name="end", sentence="small", bound=1.0)
    good, bad = (claims.run(claim, costs(value), rounds=1, warmup=0) for value in (1, 2))
    with pytest.raises(SystemExit) as ended:
        claims.finish(good, bad)
    assert ended.value.code == 1
    with pytest.raises(SystemExit) as ended:
        claims.finish(good)
    assert ended.value.code == 0


def test_cpu_counts_work_and_not_waiting(claims: ModuleType) -> None:
    import time

    assert claims.cpu(lambda: time.sleep(0.2))() < 0.1
    assert claims.cpu(lambda: sum(range(3_000_000)))() > 0.001


def test_cpu_counts_children_that_were_waited_for(claims: ModuleType) -> None:
    command: Sequence[str] = [sys.executable, "-S", "-c", "sum(range(3_000_000))"]
    assert claims.cpu(lambda: subprocess.run(command, check=True))() > 0.005


def test_every_script_imports_and_makes_a_claim_of_its_own(tmp_path: Path) -> None:
    program = (
        "import importlib, json, sys\n"
        "from claims import Claim\n"
        "told = {}\n"
        "for name in sys.argv[1:]:\n"
        "    module = importlib.import_module(name)\n"
        "    told[name] = [value.name for value in vars(module).values() if isinstance(value, Claim)]\n"
        "print(json.dumps(told))\n"
    )
    (tmp_path / "look.py").write_text(program)
    told = subprocess.run(
        [sys.executable, tmp_path / "look.py", *SCRIPTS],
        env={"PYTHONPATH": f"{BENCH}:{BENCH.parent}", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    names = json.loads(told.stdout)
    assert set(names) == set(SCRIPTS)
    assert all(names.values()), names
    every = [claim for script in names.values() for claim in script]
    assert len(every) == len(set(every)), "two claims would write into one record"


def test_records_in_the_repository_belong_to_claims_that_are_made() -> None:
    told = "".join((BENCH / f"{script}.py").read_text() for script in SCRIPTS)
    for path in (BENCH / "results").glob("*.json"):
        if isinstance(json.loads(path.read_text()), dict):  # of a whole card, by gpu.py
            continue
        assert f'"{path.stem}"' in told, f"{path.name} is of a claim that no script makes"
