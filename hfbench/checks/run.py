"""Judges one target with every rule that applies to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from hfbench.checks.base import Rule, as_found, rules
from hfbench.checks.finding import SEVERITIES, Finding, Verdict, verdict_of
from hfbench.checks.subject import Options, Subject
from hfbench.checks.target import find, troubled
from hfbench.errors import HfbenchError
from hfbench.models.remote_mark import refuse_headers_only
from hfbench.models.values.decode import load_numpy
from hfbench.models.values.facts import ValueScan

UNKNOWN = "HB100"
"""The id of problems that no rule is declared for: they are never lost."""

MOST = 1_000
"""Findings of one rule; a hostile file could ask for as many as it has bytes."""

NOTHING_JUDGED = frozenset({"HB801", "HB802", "HB803", "HB804"})
"""Findings after which nothing was there to be judged."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What all rules found on one target, errors first."""

    model: str
    folder: str
    findings: tuple[Finding, ...]
    values: ValueScan | None = None
    """The figures of every tensor, if they were asked for and could be read."""

    @property
    def verdict(self) -> Verdict:
        """`refuse`, `warn` or `ok`, by the severest finding."""
        return verdict_of({each.severity for each in self.findings})

    @property
    def judged(self) -> bool:
        """False when there was nothing to judge."""
        return not any(each.id in NOTHING_JUDGED for each in self.findings)


def check(
    target: str,
    *,
    cache_dir: Path | None = None,
    options: Options | None = None,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """The report on a target; `watch` is told the bytes of values read and their total, if the options ask for them.

    UsageError when the target is no folder, no file of weights and no reference; where values are asked for,
    MissingError without numpy and WeightsAbsent for a model that was left on its hub.
    """
    subject = find(target, cache_dir=cache_dir, options=options)
    subject.watch = watch
    if subject.options.values:
        load_numpy()
        refuse_headers_only(subject.folder, "reading values")
    try:
        return report_on(subject)
    except HfbenchError as error:  # the folder went away or became unreadable meanwhile
        return report_on(troubled(subject.location, "not_there", error.found, error.remedy))
    except OSError as error:
        found = f"{error.filename or subject.folder} cannot be read ({error.strerror})"
        return report_on(troubled(subject.location, "folder_unreadable", found))


def report_on(subject: Subject, chosen: Iterable[Rule] | None = None) -> Report:
    """The report on a subject, by all rules or by those given."""
    found = [
        finding for each in chosen or rules().values() if _applies(each, subject) for finding in _first(each, subject)
    ]
    if chosen is None:
        found += _unclaimed(subject)
    order = {severity: place for place, severity in enumerate(SEVERITIES)}
    unique = {(each.id, each.file, each.message): each for each in found}
    ordered = sorted(unique.values(), key=lambda each: (order[each.severity], each.id))
    nothing = subject.trouble is not None and subject.trouble.severity == "error"
    return Report(
        model=_name(subject),
        folder=str(subject.folder),
        findings=tuple(ordered),
        values=None if nothing else subject.values,
    )


def _applies(rule: Rule, subject: Subject) -> bool:
    if rule.scope == "reference":
        return True
    if subject.trouble is not None and subject.trouble.severity == "error":
        return False
    return rule.scope == "weights" or not subject.only


def _first(each: Rule, subject: Subject) -> Iterator[Finding]:
    """What a rule finds, up to a number that nobody reads; one more says that there is more."""
    findings = each.findings(subject)
    last = None
    for last in islice(findings, MOST):
        yield last
    if last is not None and next(findings, None) is not None:
        yield replace(last, file="", message=f"there is more of this kind; the first {MOST:,} are listed", evidence={})


def _unclaimed(subject: Subject) -> Iterator[Finding]:
    claimed = {code for each in rules().values() for code in each.codes}
    for problem in subject.problems:
        if problem.code not in claimed:
            found = as_found(problem)
            yield Finding(
                id=UNKNOWN,
                name=(problem.code or "unnamed").replace("_", "-"),
                severity=problem.severity,
                file=found.file,
                message=found.message,
                evidence=found.evidence,
                remedy=found.remedy,
            )


def _name(subject: Subject) -> str:
    return f"{subject.folder / subject.only}" if subject.only else subject.location.name
