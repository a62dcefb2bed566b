"""Findings, steps and verdicts as facts: what an explanation shows of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hfbench.checks.finding import Finding
from hfbench.models.runtimes import Runtime
from hfbench.screens.model_tabs.explanation import data_facts
from hfbench.screens.model_tabs.verdict_lines import STATES, verdict_state
from hfbench.screens.model_view import SIGNS
from hfbench.widgets.facts_lines import Fact

if TYPE_CHECKING:
    from hfbench.actions.rule import RuleResult
    from hfbench.models.resolution.trace import Step


def finding_facts(finding: Finding, rule: RuleResult | None) -> Iterator[Fact]:
    """What was found, where, what to do, the evidence, and the page of the rule."""
    yield Fact("severity", finding.severity, SIGNS[finding.severity])
    yield Fact("found", finding.message)
    if finding.file:
        yield Fact("in", finding.file)
    if finding.remedy:
        yield Fact("what to do", finding.remedy)
    yield from _headed("evidence", data_facts(finding.evidence))
    if rule is None:
        return
    yield Fact("", "")
    yield Fact("the rule", rule.summary)
    yield Fact("why", rule.why)
    yield Fact("remedy", rule.remedy)
    yield Fact("", f"{rule.severity} as a rule; judges {rule.judges}", "muted")


def others_facts(findings: Sequence[Finding]) -> Iterator[Fact]:
    """Findings of one rule, a line or two each."""
    for finding in findings:
        yield Fact("", f"{finding.file}: {finding.message}" if finding.file else finding.message)


def step_facts(step: Step) -> Iterator[Fact]:
    """What was looked at, what was found, why the next step follows, and all of it as data."""
    yield Fact("looked at", step.looked_at or "nothing")
    yield Fact("found", step.found, STATES[step.state])
    if step.why:
        yield Fact("why", step.why)
    details = list(data_facts(step.details))
    if details:
        yield Fact("", "")
        yield from details


def verdict_facts(runtime: Runtime, verdict: Mapping[str, Any], steps: Sequence[Step]) -> Iterator[Fact]:
    """Whether and how one runtime loads the model, which files it reads and passes over, and whose code would run."""
    yield Fact("verdict", "loads" if verdict["loads"] else "does not load", verdict_state(verdict))
    yield Fact("reason", verdict["reason"])
    if warning := verdict.get("warning"):
        yield Fact("but", warning, "warn")
    rules = "the package installed here" if verdict["installed"] else "the rules that came with hfbench"
    yield Fact("version", f"{verdict['version']}, by {rules}")
    if unread := verdict.get("unread"):
        yield Fact("", f"{unread} is installed, and its source could not be read", "warn")
    yield Fact(
        "judged on", "the configuration and the weights" if verdict["judged"] == "weights" else "config.json alone"
    )
    if runtime in ("transformers", "vllm"):
        yield Fact("config class", verdict["class"] or "none")
    yield Fact("model class", verdict["model_class"] or "none")
    yield from _headed("files", (Fact("", name) for name in verdict["files"] or ["none"]))
    yield from _headed("passed over", (Fact("", name) for name in verdict["ignored"] or ["none"]))
    code = next((step for step in steps if step.step == "remote code"), None)
    if code is not None and runtime in ("transformers", "vllm"):
        named = [*code.details.get("files", ()), *(f"{name} (not there)" for name in code.details.get("missing", ()))]
        named += [f"whatever {name} holds" for name in code.details.get("repositories", ())]
        yield from _headed("remote code", (Fact("", name) for name in named or ["none would run"]))
    yield from _headed("notes", (Fact("", note) for note in verdict["notes"]))


def _headed(label: str, facts: Iterator[Fact]) -> Iterator[Fact]:
    """The first of some facts carries their common label; what has one of its own keeps it behind that."""
    for number, fact in enumerate(facts):
        value = f"{fact.label}: {fact.value}" if fact.label else fact.value
        yield Fact("" if number else label, value, fact.state)
