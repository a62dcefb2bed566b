"""Declaring rules: what is refused, and what a rule makes of what its function yields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hfbench.checks.base import DuplicateRule, Found, discover, rule, rules
from hfbench.checks.finding import verdict_of
from hfbench.checks.run import UNKNOWN, report_on
from hfbench.checks.subject import Subject, subject_of
from hfbench.models.problem import Problem


def nothing(subject: Subject) -> Iterator[Found]:
    """Nothing is wrong. Why: it is a test. Remedy: none is needed."""
    yield from ()


@pytest.mark.parametrize(("id", "name"), [("HB1", "a-name"), ("XX100", "a-name"), ("HB100", "A Name"), ("HB100", "")])
def test_a_malformed_id_or_name_is_refused_where_it_is_declared(id: str, name: str) -> None:
    with pytest.raises(TypeError, match="is not an id"):
        rule(id, name)(nothing)


def test_a_docstring_without_its_parts_is_refused() -> None:
    def bare(subject: Subject) -> Iterator[Found]:
        """It only says what it does."""
        yield from ()

    with pytest.raises(TypeError, match="Why: and Remedy:"):
        rule("HB999", "bare")(bare)


@pytest.mark.parametrize(("id", "name", "shared"), [("HB998", "other", "HB998"), ("HB997", "first", "first")])
def test_two_rules_of_one_id_or_name_are_refused(tmp_path: Path, id: str, name: str, shared: str) -> None:
    text = (
        "from hfbench.checks.base import rule\n"
        "@rule({id!r}, {name!r})\ndef judge(subject):\n    '''A. Why: b. Remedy: c.'''\n    yield from ()\n"
    )
    package = tmp_path / f"rules_{id}_{name}"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text(text.format(id="HB998", name="first"))
    (package / "two.py").write_text(text.format(id=id, name=name))
    made = ModuleType(package.name)
    made.__path__ = [str(package)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, package.name, made)
        with pytest.raises(DuplicateRule, match=f"{shared} is declared by .*one.* and by .*two"):
            discover(made)


def test_rules_are_listed_by_id_and_each_says_why_and_what_to_do() -> None:
    known = rules()
    assert list(known) == sorted(known)
    for each in known.values():
        assert each.summary.endswith(".")
        assert each.why.endswith(".")
        assert each.remedy.endswith(".")


def test_text_and_evidence_from_files_are_made_safe(model: Path) -> None:
    def loud(subject: Subject) -> Iterator[Found]:
        """It shouts. Why: it is a test. Remedy: be quiet."""
        yield Found(message="\x1b[31mred", file="a\u202eb", evidence={"\x07": ["\x1b", {"x": "\n"}], "n": 1})

    rule("HB996", "loud")(loud)
    (found,) = loud.rule.findings(subject_of(model))  # type: ignore[attr-defined]
    assert (found.message, found.file, found.remedy) == ("\\x1b[31mred", "a\\u202eb", "be quiet.")
    assert found.evidence == {"\\x07": ["\\x1b", {"x": "\\n"}], "n": 1}


def test_a_problem_that_no_rule_is_declared_for_is_told_all_the_same(model: Path) -> None:
    subject = subject_of(model)
    subject.trouble = Problem(severity="warning", where="x", found="something new", code="brand_new")
    (found,) = report_on(subject).findings
    assert (found.id, found.name, found.message) == (UNKNOWN, "brand-new", "something new")


def test_the_severest_finding_makes_the_verdict() -> None:
    assert verdict_of({"info"}) == "ok"
    assert verdict_of({"info", "warning"}) == "warn"
    assert verdict_of({"error", "warning"}) == "refuse"
