"""What a check rule is: one function, one stable id, and a docstring from which its page is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Literal

from hfbench.checks.finding import Finding
from hfbench.checks.subject import Subject
from hfbench.errors import HfbenchError
from hfbench.models.problem import Problem, Severity
from hfbench.text import printable

Scope = Literal["model", "weights", "reference"]
"""`model` rules need a folder, `weights` rules also judge a single file, `reference` rules need neither."""

ID = re.compile(r"HB\d{3}")
LONGEST = 2_000
"""Characters of one text in a finding: a name out of a file may be a megabyte long."""

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a rule yields; the runner adds the rule's id, name, severity and remedy where none is given here."""

    message: str
    file: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    remedy: str = ""
    severity: Severity | None = None


Judge = Callable[[Subject], Iterator[Found]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A declared rule. `codes` are the kinds of Problem of the models room that it passes on, if it does."""

    id: str
    name: str
    severity: Severity
    scope: Scope
    codes: tuple[str, ...]
    summary: str
    why: str
    remedy: str
    judge: Judge

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """Everything this rule finds."""
        for found in self.judge(subject):
            yield Finding(
                id=self.id,
                name=self.name,
                severity=found.severity or self.severity,
                file=_text(found.file),
                message=_text(found.message),
                evidence=_plain(found.evidence),
                remedy=_text(found.remedy or self.remedy),
            )


class DuplicateRule(HfbenchError):
    """Two rules share an id, a name or a code of a problem."""


def rule(
    id: str,
    name: str,
    *,
    severity: Severity = "error",
    on: Scope = "model",
    codes: tuple[str, ...] = (),
) -> Callable[[Judge], Judge]:
    """Declare a generator over a Subject to be a rule; its docstring has a first line, `Why:` and `Remedy:`.

    TypeError at import for a malformed id, name or docstring.
    """

    def declare(judge: Judge) -> Judge:
        if not ID.fullmatch(id) or not NAME.fullmatch(name):
            raise TypeError(f"{judge.__name__}: {id!r}, {name!r} is not an id HB000 and a name of small words")
        summary, why, remedy = _parts(judge)
        made = Rule(
            id=id,
            name=name,
            severity=severity,
            scope=on,
            codes=codes,
            summary=summary,
            why=why,
            remedy=remedy,
            judge=judge,
        )
        setattr(judge, "rule", made)  # noqa: B010 - a function has no such attribute for the type checker
        return judge

    return declare


def passed_on(subject: Subject, *codes: str) -> Iterator[Found]:
    """The problems of some kinds that reading the model found, as findings."""
    for problem in subject.problems:
        if problem.code in codes:
            yield as_found(problem)


def as_found(problem: Problem) -> Found:
    """A problem of the models room as a rule yields it."""
    return Found(
        message=problem.found,
        file=problem.where,
        evidence={"code": problem.code},
        remedy=problem.remedy,
        severity=problem.severity,
    )


def rules() -> dict[str, Rule]:
    """Every rule by id, in the order of ids, found by walking `hfbench.checks.rules`."""
    import hfbench.checks.rules as package

    return discover(package)


def discover(package: ModuleType) -> dict[str, Rule]:
    """The rules declared in a package's modules; DuplicateRule when two share an id, a name or a code."""
    found: dict[str, Rule] = {}
    taken: dict[str, str] = {}
    for module in iter_modules(package.__path__):
        for each in vars(import_module(f"{package.__name__}.{module.name}")).values():
            made = getattr(each, "rule", None)
            if not isinstance(made, Rule) or each.__module__ != f"{package.__name__}.{module.name}":
                continue
            for key in (made.id, made.name, *(f"code {code}" for code in made.codes)):
                where = f"{each.__module__}.{each.__name__}"
                if key in taken:
                    raise DuplicateRule(f"{key} is declared by {taken[key]} and by {where}", remedy="rename one")
                taken[key] = where
            found[made.id] = made
    return dict(sorted(found.items()))


def _parts(judge: Judge) -> tuple[str, str, str]:
    text = " ".join((judge.__doc__ or "").split())
    match = re.fullmatch(r"(.+?\.) Why: (.+?) Remedy: (.+?\.)", text)
    if not match:
        raise TypeError(f"{judge.__name__}: the docstring of a rule has a first sentence, Why: and Remedy:")
    return match[1], match[2], match[3]


def _text(text: str) -> str:
    return printable(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def _plain(value: Any) -> Any:
    """Evidence that is safe to print, whatever file it came from."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value
