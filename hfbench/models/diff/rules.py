"""Rules that turn A's tensor names into B's: `model.layers.*.attn=model.layers.*.self_attn`, or `re:PATTERN=NEW`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hfbench.errors import UsageError
from hfbench.models.problem import quoted

EXPRESSION = "re:"

_STAR = re.compile(r"(\*\*?)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: the first place where `find` matches is replaced by the template `into`."""

    text: str
    find: re.Pattern[str]
    into: str

    def apply(self, name: str) -> str:
        """The name after the rule; the same where it does not match."""
        return self.find.sub(self.into, name, count=1)


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """The rules, in order; UsageError says what is wrong with one.

    In `OLD=NEW`, OLD is a run of whole dotted parts anywhere in the name; it is tied to the name's start when it is
    empty. `*` stands for anything without a dot, `**` for anything; those of NEW repeat those of OLD in turn.
    `re:PATTERN=NEW` is a regular expression of Python and its replacement, divided at the last `=`.
    """
    return tuple(map(parse_rule, texts))


def parse_rule(text: str) -> Rule:
    """One rule of `parse_rules`."""
    if text.startswith(EXPRESSION):
        return _expression(text)
    old, equals, new = text.partition("=")
    if not equals or "=" in new:
        found = "has more than one '='" if equals else "has no '='"
        raise _wrong(text, found, "write OLD=NEW, or re:PATTERN=NEW for names that hold '='")
    if old == new:
        raise _wrong(text, "changes nothing", "write A's part of the name before '=' and B's behind it")
    stars = old.replace("**", "*").count("*")
    if new.replace("**", "*").count("*") > stars:
        raise _wrong(text, "has more stars behind '=' than before it", "each * of NEW repeats one of OLD")
    return Rule(text, re.compile(_glob(old), re.DOTALL), _template(new))


def rewrite(name: str, rules: Sequence[Rule]) -> tuple[str, tuple[Rule, ...]]:
    """The name after each rule in turn, and the rules that changed it."""
    used: list[Rule] = []
    for rule in rules:
        changed = rule.apply(name)
        if changed != name:
            name = changed
            used.append(rule)
    return name, tuple(used)


def _expression(text: str) -> Rule:
    pattern, equals, new = text.removeprefix(EXPRESSION).rpartition("=")
    if not equals or not pattern:
        raise _wrong(text, "has no pattern before '='", "write re:PATTERN=NEW")
    try:
        find = re.compile(pattern, re.DOTALL)
        find.sub(new, "", count=1)  # looks at the replacement too
    except (re.error, IndexError, OverflowError, RecursionError) as error:
        raise _wrong(text, f"is no regular expression: {error}", "see the syntax of Python's re") from None
    return Rule(text, find, new)


def _glob(old: str) -> str:
    if not old:
        return r"\A"
    kinds = {"*": r"([^.]*)", "**": r"(.+?)"}
    middle = "".join(kinds.get(part) or re.escape(part) for part in _STAR.split(old) if part)
    before = "" if old.startswith(".") else r"(?<![^.])"
    return before + middle + ("" if old.endswith(".") else r"(?![^.])")


def _template(new: str) -> str:
    parts, star = [], 0
    for part in _STAR.split(new):
        star += part.startswith("*")
        parts.append(rf"\g<{star}>" if part.startswith("*") else part.replace("\\", r"\\"))
    return "".join(parts)


def _wrong(text: str, found: str, remedy: str) -> UsageError:
    return UsageError(f"the rule {quoted(text)} {found}", where="rename", remedy=remedy)
