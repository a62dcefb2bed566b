"""Which cell of one thing is compared with which of another, and in a sentence what that comparison is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.compare.metrics import metrics_of
from hfbench.compare.result import Difference
from hfbench.compare.subject import Measured, Subject, cell_label
from hfbench.models.problem import counted

WORK = ("batch", "prompt", "prompt_text", "prompt_file", "new_tokens")
"""Settings that change how much work a step is."""


@dataclass(frozen=True, kw_only=True)
class Match:
    """Pairs of results, and what only one side has."""

    pairs: tuple[tuple[Measured, Measured], ...]
    only_a: tuple[Measured, ...] = ()
    only_b: tuple[Measured, ...] = ()
    one_with_all: str = ""
    """Set when one run is compared with every cell of a sweep: the side that is one run."""

    def values_of(self, a: Measured, b: Measured) -> Mapping[str, Any]:
        """The place of a pair, with the step where a cell has several."""
        values = a.values if self.one_with_all == "B" else b.values
        step = a.step if self.one_with_all == "B" else b.step
        return {**values, "step": step} if step else values


def matched(a: Subject, b: Subject) -> Match:
    """Cells by their values; a run by itself is compared with every cell of the same action of the other side."""
    ours, theirs = ({(each.cell, each.step): each for each in side.measured} for side in (a, b))
    one, other = next(iter(ours.values()), None), next(iter(theirs.values()), None)
    if one is None or other is None:
        return Match(pairs=(), only_a=a.measured, only_b=b.measured)
    if len(ours) == len(theirs) == 1:
        return Match(pairs=((one, other),))
    if len(ours) == 1 and not one.values:
        return Match(pairs=tuple((one, each) for each in _alike(one, b.measured)), one_with_all="A")
    if len(theirs) == 1 and not other.values:
        return Match(pairs=tuple((each, other) for each in _alike(other, a.measured)), one_with_all="B")
    return Match(
        pairs=tuple((ours[place], theirs[place]) for place in ours if place in theirs),
        only_a=tuple(each for place, each in ours.items() if place not in theirs),
        only_b=tuple(each for place, each in theirs.items() if place not in ours),
    )


def same_run(a: Measured, b: Measured) -> bool:
    """Whether two results are one and the same: of one job, or where a job is not known, with the same samples."""
    if a.result is None or b.result is None:
        return False
    if a.job and b.job:
        return a.job == b.job
    ours, theirs = (_samples(each) for each in (a, b))
    return bool(ours) and ours == theirs


def _samples(measured: Measured) -> dict[str, tuple[float, ...]]:
    """The samples of every metric that has some."""
    return {name: each.values for name, each in metrics_of(measured.result).items() if len(each.values) > 1}


def sentence(
    a: Subject, b: Subject, found: Sequence[Difference], match: Match, *, letter: str = "B", turns: bool = False
) -> str:
    """What is compared, and what speaks for reading the figures with care. Sides taken in `turns` share one job."""
    if not match.pairs:
        if not a.measured or not b.measured:
            return "nothing was compared: one side is empty"
        return f"nothing was compared: no cell of B has the values of a cell of A ({_axes(a)} against {_axes(b)})"
    told = [_what(a, b, match)]
    if not turns and all(same_run(one, other) for one, other in match.pairs):
        told.insert(0, f"A and {letter} are the same run, and tell nothing of a change")
    about: dict[str, list[str]] = {}
    for each in found:
        about.setdefault(each.about, []).append(each.name)
    if "model" in about:
        told.append("the models differ: the figures tell which model is faster here, not what a change did")
    if settings := [name for name in about.get("setting", ()) if name not in WORK]:
        told.append(f"set otherwise: {', '.join(settings[:6])}")
    if work := [name for name in about.get("setting", ()) if name in WORK]:
        told.append(f"{', '.join(work)} differ, so that a step is not the same work: rates compare, times do not")
    if "hardware" in about:
        told.append("the hardware differs")
    elif "machine" in about and "host" in about["machine"]:
        told.append("they ran on different hosts")
    if "software" in about:
        told.append(f"{counted(len(about['software']), 'difference')} of software")
    if not found and not match.one_with_all:
        told.append("settings, machine and software are the same")
    return "; ".join(told)


def _alike(one: Measured, others: Sequence[Measured]) -> list[Measured]:
    """Results of the same action, all of them where none is; and what ended cells that never came to it."""
    alike = [each for each in others if each.action == one.action] or list(others)
    reached = {each.cell for each in alike}
    return [*alike, *(each for each in others if each.result is None and each.cell not in reached)]


def _what(a: Subject, b: Subject, match: Match) -> str:
    if match.one_with_all:
        many = "B" if match.one_with_all == "A" else "A"
        cells = counted(len(match.pairs), "cell")
        return f"{match.one_with_all} is one run, and is compared with each of {cells} of {many}"
    actions = (
        f"{', '.join(a.actions)}" if a.actions == b.actions else f"{', '.join(a.actions)} and {', '.join(b.actions)}"
    )
    if len(match.pairs) == 1:
        return actions
    lacking = len(match.only_a) + len(match.only_b)
    alone = f", {lacking} only in one" if lacking else ""
    return f"{actions}, {counted(len(match.pairs), 'cell')} in both{alone}"


def _axes(subject: Subject) -> str:
    names = dict.fromkeys(name for each in subject.measured for name in each.values)
    return ", ".join(names) or cell_label({}) or "one run"
