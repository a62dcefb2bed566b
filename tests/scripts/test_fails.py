"""Steps that are expected to fail: a refusal of the right words counts as well done, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
HEAD = "hfbench: 1\nvars: {word: broken}\nsteps:\n"
AFTER = "  - gpus: {}\n"


@pytest.mark.parametrize("fails", ["true", "the toy is broken", '"is {{ word }}. Buy another"'])
def test_a_refusal_that_is_expected_is_no_failure_and_the_run_goes_on(run: Run, fails: str) -> None:
    unused = HEAD if "word" in fails else HEAD.replace("vars: {word: broken}\n", "")
    done = run(unused + f"  - toy.fail: {{}}\n    fails: {fails}\n" + AFTER)
    assert (done.code, done.statuses, done.stderr.count("warn")) == (0, ["refused", "ok"], 0), done.stderr
    [told] = done.of("assert")
    assert (told["ok"], told["actual"]) == (True, "toy: the toy is broken. Buy another")
    assert done.of("step_finished")[0]["error"]["found"] == "the toy is broken"
    assert done.events[-1]["counts"]["steps"]["refused"] == 1


def test_expectations_of_a_result_that_found_the_thing_wrong_are_asked_beside_it(run: Run) -> None:
    step = "  - toy.fail: {how: result, save_as: it}\n    fails: true\n    expect: [it.failed == true]\n"
    done = run("hfbench: 1\nsteps:\n" + step)
    assert (done.code, done.statuses) == (0, ["refused"]), done.stderr
    assert [each["ok"] for each in done.of("assert")] == [True, True]


def test_a_step_that_goes_well_against_expectation_ends_the_run_with_1(run: Run) -> None:
    done = run("hfbench: 1\nsteps:\n  - gpus: {}\n    fails: true\n" + AFTER)
    assert (done.code, done.statuses) == (1, ["ok"])
    assert "s.hfb.yaml:4: not as expected: fails: true; this step went well" in done.stderr


@pytest.mark.parametrize(
    ("how", "fails", "code", "told"),
    [
        ("error", "another sentence", 3, "it failed otherwise: toy: the toy is broken"),
        ("bug", "true", 3, "did not refuse anything"),
        ("segv", "true", 3, "did not refuse anything"),
        ("missing", "true", 4, "did not refuse anything"),
    ],
)
def test_other_words_a_bug_a_crash_and_what_is_missing_stay_failures(
    run: Run, how: str, fails: str, code: int, told: str
) -> None:
    done = run(f"hfbench: 1\nsteps:\n  - toy.fail: {{how: {how}}}\n    fails: {fails}\n" + AFTER)
    assert (done.code, done.statuses) == (code, ["failed"])
    assert told in done.stderr


def test_a_step_that_is_skipped_is_not_asked_whether_it_failed(run: Run) -> None:
    done = run("hfbench: 1\nsteps:\n  - toy.fail: {how: missing}\n    fails: true\n", "--skip-missing")
    assert (done.code, done.statuses, done.of("assert")[0]["ok"]) == (0, ["skipped"], None)


@pytest.mark.parametrize("wrong", ["false", "3", "[a]", "''", "null"])
def test_only_true_and_words_are_taken(run: Run, wrong: str) -> None:
    done = run(f"hfbench: 1\nsteps:\n  - gpus: {{}}\n    fails: {wrong}\n", "--check")
    assert (done.code, done.events) == (2, [])
    assert "s.hfb.yaml:4:12: fails is true or words of the sentence that is expected" in done.stderr


def test_the_plan_tells_what_is_to_fail_and_a_check_that_all_is_well(run: Run) -> None:
    text = "hfbench: 1\nmatrix: {n: [a, b]}\nsteps:\n  - toy.fail: {say: '{{ n }}'}\n    fails: broken\n"
    assert [event["fails"] for event in run(text, "--dry-run").events] == ["broken", "broken"]
    done = run(text, "--check")
    assert (done.code, done.events) == (0, [])
    assert done.stderr.endswith("s.hfb.yaml: 2 steps, 2 cells: ok\n")
