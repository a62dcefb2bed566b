"""Every rule, with models that it must and must not speak against."""

from __future__ import annotations

from collections.abc import Callable

import cases_config
import cases_pickles
import cases_tokenizer
import cases_weights
import pytest
from rule_case import Case

from hfbench.checks.base import rules
from hfbench.checks.finding import SEVERITIES, Finding

CASES: list[Case] = [*cases_weights.CASES, *cases_pickles.CASES, *cases_config.CASES, *cases_tokenizer.CASES]

ELSEWHERE = frozenset({"HB134", "HB801", "HB802", "HB803", "HB804", "HB805", "HB806"})
"""Rules whose cases are no edits of a folder, or need another user than root: see the tests of targets."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_finds_what_it_is_for_and_nothing_else(case: Case, findings_of: Callable[..., list[Finding]]) -> None:
    found = findings_of(case.id, case.edit, **case.options)
    severities = [each.severity for each in found]
    assert next((each for each in SEVERITIES if each in severities), None) == case.severity, found
    for each in found:
        assert (each.message + each.file + each.remedy).isprintable()
        assert each.message
        assert each.remedy


@pytest.mark.parametrize("id", [id for id in rules() if id not in ELSEWHERE])
def test_every_rule_has_a_failing_and_a_passing_case(id: str) -> None:
    assert {case.severity is None for case in CASES if case.id == id} == {True, False}
