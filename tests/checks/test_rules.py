"""Every rule, with models that it must and must not speak against."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cases_config
import cases_pickles
import cases_scanned
import cases_target
import cases_tokenizer
import cases_weights
import pytest
from cases_target import TargetCase
from rule_case import Case

from hfbench.checks.base import rules
from hfbench.checks.finding import SEVERITIES, Finding
from hfbench.checks.run import check

CASES: list[Case] = [
    *cases_weights.CASES,
    *cases_scanned.CASES,
    *cases_pickles.CASES,
    *cases_config.CASES,
    *cases_tokenizer.CASES,
]

PARAMETERS = [
    pytest.param(case, id=str(case), marks=[pytest.mark.unprivileged] if case.id == "HB134" else []) for case in CASES
]


@pytest.mark.parametrize("case", PARAMETERS)
def test_a_rule_finds_what_it_is_for_and_nothing_else(case: Case, findings_of: Callable[..., list[Finding]]) -> None:
    found = findings_of(case.id, case.edit, **case.options)
    severities = [each.severity for each in found]
    assert next((each for each in SEVERITIES if each in severities), None) == case.severity, found
    for each in found:
        assert (each.message + each.file + each.remedy).isprintable()
        assert each.message
        assert each.remedy


@pytest.mark.parametrize("case", cases_target.CASES, ids=str)
def test_a_rule_of_references_finds_what_it_is_for(
    case: TargetCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = case.prepare(tmp_path)
    monkeypatch.chdir(place.cwd)
    found = [each for each in check(place.given, cache_dir=place.cache).findings if each.id == case.id]
    assert [each.severity for each in found] == [case.severity] * bool(case.severity)
    assert all(each.message and each.remedy for each in found)


@pytest.mark.parametrize("id", rules())
def test_every_rule_has_a_failing_and_a_passing_case(id: str) -> None:
    every = [*CASES, *cases_target.CASES]
    assert {case.severity is None for case in every if case.id == id} == {True, False}


def test_no_case_is_of_a_rule_that_is_gone() -> None:
    assert {case.id for case in [*CASES, *cases_target.CASES]} <= set(rules())
