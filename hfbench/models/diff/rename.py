"""Which tensor of B is which of A: by name, by rules that were given, and by what wrappers put around names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hfbench.errors import UsageError
from hfbench.models.diff.facts import Clash, Rename
from hfbench.models.diff.rules import Rule, rewrite
from hfbench.models.problem import Problem, counted, quoted

PREFIXES = frozenset({"module", "base_model", "model", "language_model", "transformer"})
"""What data parallelism, PEFT and the base classes of transformers put before a name, in any order and number."""

WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer"})
"""What torch.compile, FSDP, checkpointing and PEFT put between the parts of a name."""


@dataclass(frozen=True, slots=True)
class Names:
    """How the names of two sides belong together. `partner` holds B's name of each tensor of A that has one."""

    partner: dict[str, str]
    renames: tuple[Rename, ...]
    clashes: tuple[Clash, ...]
    notes: tuple[Problem, ...]


def match_names(a: Collection[str], b: Collection[str], rules: Sequence[Rule] = ()) -> Names:
    """Pairs of names, each of which is used once; UsageError when a rule changes no name of A.

    Rules come before equal names, equal names before wrappers. Where several names become one, none is renamed.
    """
    in_a, in_b = set(a), set(b)
    moved = _Moved(a, in_a, in_b, rules)
    taken = set(moved.partner.values())
    partner = {name: moved.partner.get(name, name) for name in a if name in moved.partner or name in in_b}
    left_a = (name for name in a if name not in partner and name not in moved.stuck)
    held = taken | set(partner.values())
    left_b = (name for name in b if name not in held)
    renames, clashes = _unwrapped(left_a, left_b)
    partner |= {each.a: each.b for each in renames}
    return Names(partner, (*moved.renames(), *renames), (*moved.clashes, *clashes), tuple(moved.notes(b)))


def bare_name(name: str) -> str:
    """The name without wrappers and prefixes: `module._orig_mod.model.norm.weight` -> `norm.weight`."""
    return _taken_apart(name)[2]


def find_renames(only_a: Iterable[str], only_b: Iterable[str]) -> list[Rename]:
    """Pairs of names with one bare name, in the order of A; a bare name that one side has twice makes no pair."""
    return _unwrapped(only_a, only_b)[0]


class _Moved:
    """The names that rules change into names of B; those that would meet another one on the way stay."""

    def __init__(self, a: Collection[str], in_a: set[str], in_b: set[str], rules: Sequence[Rule]) -> None:
        self.rules = rules
        self.used: dict[str, tuple[Rule, ...]] = {}
        self.partner: dict[str, str] = {}
        self.nowhere: dict[Rule, list[str]] = {}
        """What rules led to and B has not."""
        self.clashes: list[Clash] = []
        self.stuck: set[str] = set()
        if rules:
            self._apply(a, in_b)
            self._settle(in_a)

    def renames(self) -> Iterator[Rename]:
        for name, into in self.partner.items():
            yield Rename(a=name, b=into, rule=_texts(self.used[name]), by="rule")

    def notes(self, b: Collection[str]) -> Iterator[Problem]:
        """UsageError when a rule changed nothing."""
        idle = set(self.rules) - {rule for used in self.used.values() for rule in used}
        for rule in (rule for rule in self.rules if rule in idle):
            turned = any(rule.apply(name) != name for name in b)
            remedy = "rules turn A's names into B's: write it the other way round" if turned else ""
            raise UsageError(f"the rule {quoted(rule.text)} changes no tensor name of A", where="rename", remedy=remedy)
        for rule, names in self.nowhere.items():
            found = f"the rule {quoted(rule.text)} leads {counted(len(names), 'tensor')} to names that B lacks"
            yield Problem(
                severity="info", where="", found=f"{found}, such as {quoted(names[0])}", code="rename_nowhere"
            )

    def _apply(self, a: Collection[str], in_b: set[str]) -> None:
        for name in a:
            into, used = rewrite(name, self.rules)
            if not used:
                continue
            self.used[name] = used
            if into in in_b and into != name:
                self.partner[name] = into
            elif into != name:
                self.nowhere.setdefault(used[-1], []).append(into)

    def _settle(self, in_a: set[str]) -> None:
        """Take back what cannot be: two names that become one, or one that becomes a name which stays."""
        claims: defaultdict[str, list[str]] = defaultdict(list)
        for name, into in self.partner.items():
            claims[into].append(name)
        pending = [
            into for into, names in claims.items() if len(names) > 1 or (into in in_a and into not in self.partner)
        ]
        while pending:
            into = pending.pop()
            names = [name for name in claims[into] if name in self.partner]
            stays = [into] if into in in_a and into not in self.partner else []
            if not names or len(names) + len(stays) < 2:
                continue
            rule = _texts(self.used[names[0]])
            self.clashes.append(Clash(name=into, rule=rule, a=(*names, *stays), b=(into,)))
            self.stuck.update(names)
            for name in names:
                del self.partner[name]
            pending += [name for name in names if name in claims]  # they stay now: whoever wanted their names cannot


def _unwrapped(only_a: Iterable[str], only_b: Iterable[str]) -> tuple[list[Rename], list[Clash]]:
    bare_a, bare_b = _by_bare_name(only_a), _by_bare_name(only_b)
    renames, clashes = list[Rename](), list[Clash]()
    for bare, a in bare_a.items():
        b = bare_b.get(bare, [])
        if len(a) == len(b) == 1:
            renames.append(Rename(a=a[0], b=b[0], rule=_wrapper_rule(a[0], b[0]), by="wrapper"))
        elif b:
            clashes.append(Clash(name=bare, rule="", a=tuple(a), b=tuple(b)))
    return renames, clashes


def _by_bare_name(names: Iterable[str]) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        found[bare_name(name)].append(name)
    return found


def _taken_apart(name: str) -> tuple[list[str], list[str], str]:
    """What stands before the bare name, the wrappers inside of it, and the bare name, which is never empty."""
    parts, begin = name.split("."), 0
    while parts[begin] in PREFIXES or parts[begin] in WRAPPERS:
        if begin + 1 == len(parts) or not any(parts[begin + 1 :]):
            break
        begin += 1
    bare = [part for place, part in enumerate(parts[begin:]) if not place or part not in WRAPPERS]
    inside = [part for part in parts[begin + 1 :] if part in WRAPPERS]
    return parts[:begin], inside, ".".join(bare)


def _wrapper_rule(a: str, b: str) -> str:
    """`module.=model.` for what stands before the names, `._orig_mod=` for what stands inside A's alone."""
    (before_a, inside_a, _), (before_b, inside_b, _) = _taken_apart(a), _taken_apart(b)
    while before_a and before_b and before_a[-1] == before_b[-1]:
        del before_a[-1], before_b[-1]
    told = ["=".join("".join(f"{part}." for part in each) for each in (before_a, before_b))]
    told = told if before_a or before_b else []
    told += [f".{part}=" for part in Counter(inside_a) - Counter(inside_b)]
    told += [f"=.{part}" for part in Counter(inside_b) - Counter(inside_a)]
    return ", ".join(told)


def _texts(rules: Iterable[Rule]) -> str:
    return ", ".join(rule.text for rule in rules)
