"""The reference pages of the rules, made from their docstrings."""

from __future__ import annotations

from collections.abc import Iterable

from hfbench.checks.base import Rule, rules

FOLDER = "checks"

JUDGES = {
    "model": "a model's folder",
    "weights": "a model's folder or a single file of weights",
    "reference": "what the target leads to",
}


def check_pages() -> dict[str, str]:
    """Every page by its name below `docs/`: one for each rule, and the list of all."""
    known = rules()
    pages = {f"{FOLDER}/{each.id}.md": page_of(each) for each in known.values()}
    return {f"{FOLDER}/index.md": index_of(known.values()), **pages}


def page_of(rule: Rule) -> str:
    """The page of one rule in Markdown."""
    lines = [
        f"# {rule.id} {rule.name}",
        "",
        rule.summary,
        "",
        f"Severity: {rule.severity}. Judges {JUDGES[rule.scope]}.",
        "",
        "## Why",
        "",
        _begun(rule.why),
        "",
        "## Remedy",
        "",
        _begun(rule.remedy),
        "",
    ]
    return "\n".join(lines)


def index_of(every: Iterable[Rule]) -> str:
    """The list of all rules in Markdown."""
    head = [
        "# Checks",
        "",
        "Made by `hfbench docs write` from the rules in `hfbench/checks/rules/`; do not edit.",
        "`hfbench check MODEL` judges a model by all of them. Severities are what a rule finds as a rule;",
        "a milder case of the same kind is told as a warning or an info.",
        "",
        "| id | name | severity | what it finds |",
        "|---|---|---|---|",
    ]
    rows = [f"| [{each.id}]({each.id}.md) | {each.name} | {each.severity} | {each.summary} |" for each in every]
    return "\n".join([*head, *rows]) + "\n"


def _begun(text: str) -> str:
    first, _, rest = text.partition(" ")
    plain = first.isalpha() and first.islower() and first not in ("transformers", "hf", "git", "pip")
    return f"{first[:1].upper()}{first[1:]} {rest}" if plain else text
