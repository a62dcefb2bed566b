"""rule: what a check rule looks for, by its id or its name."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from hfbench.actions.registry import find
from hfbench.actions.rule import Rule, RuleResult
from hfbench.checks.base import rules
from hfbench.checks.pages import page_of
from hfbench.cli import main
from hfbench.errors import UsageError
from hfbench.jobs.run import Run


def rule(name: str) -> RuleResult:
    return Rule(rule=name).perform(Run())


@pytest.mark.parametrize("name", ["HB142", "hb142", " missing-shard ", "Missing-Shard"])
def test_a_rule_is_found_by_its_id_and_by_its_name(name: str) -> None:
    assert rule(name).id == "HB142"


def test_every_rule_is_explained_in_the_words_of_its_page_within_80_columns() -> None:
    for known in rules().values():
        told = rule(known.id)
        page = page_of(known)
        assert all(part in page for part in (told.summary, told.judges, told.severity))
        assert told.why[1:] in page
        assert told.remedy[1:] in page
        assert all(len(line) <= 80 and line.isprintable() for line in told.lines())
        text = " ".join(" ".join(told.lines()).split())
        assert all(" ".join(str(value).split())[1:] in text for value in asdict(told).values() if value)


@pytest.mark.parametrize(
    ("name", "near"),
    [("HB14", "lists all"), ("HB999", "docs/checks"), ("missing-shards", "missing-shard"), ("x", "lists all")],
)
def test_an_unknown_rule_offers_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UsageError, match="there is no rule") as caught:
        rule(name)
    assert near in caught.value.remedy


def test_without_an_id_all_rules_are_listed_a_line_each() -> None:
    lines = rule("").lines()
    assert [line.split()[0] for line in lines] == list(rules())
    assert all(line.isprintable() for line in lines)


def test_the_command_line_has_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert find("rule").inline
    assert main(["rule", "HB142"]) == 0
    assert capsys.readouterr().out.startswith("HB142 missing-shard\n")
