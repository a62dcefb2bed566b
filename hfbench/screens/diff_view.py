"""What is known of two models set side by side at one moment, and how it reads in short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.errors import HfbenchError
from hfbench.exits import Exit
from hfbench.models.diff.facts import TENSOR_KINDS, VALUE_KINDS
from hfbench.models.problem import Problem, counted
from hfbench.widgets.differences import Differences
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.glyphs import State
from hfbench.widgets.progress_text import Phase

if TYPE_CHECKING:
    from hfbench.actions.diff import DiffResult

MOST_CLASHES = 20
SECTIONS = {
    "config": "configuration",
    "generation": "generation",
    "tokenizer": "tokenizer",
    "template": "chat template",
}


@dataclass(frozen=True, kw_only=True)
class DiffView:
    """A frozen picture. `result` is what the action said last, without values or with them."""

    a: str
    b: str
    result: DiffResult | None = None
    differences: Differences | None = None
    comparing: bool = True
    """True while headers and files are compared."""
    job: str = ""
    """The id of the job that compares values, while it runs."""
    phases: tuple[Phase, ...] = ()
    error: HfbenchError | None = None

    @property
    def busy(self) -> bool:
        """True while another picture is to come."""
        return self.comparing or bool(self.job)

    @property
    def verdict(self) -> tuple[str, State]:
        """`different: 2 added, 1 dtype`, and how it is painted."""
        if self.result is None:
            return ("comparing ..." if self.comparing else "not compared"), "muted"
        states: dict[int, State] = {int(Exit.OK): "ok", int(Exit.FAILED): "warn"}
        return self.result.headline, states.get(self.result.exit, "error")

    def section(self, name: str) -> int:
        """Differences found in one section, or among the tensors."""
        if self.result is None:
            return 0
        if name == "tensors":
            return len(self.differences.columns) if self.differences else 0
        return len(getattr(self.result, name))


def name_of(reference: str) -> str:
    """What to call a side: the last part of its path."""
    return reference.rstrip("/").rpartition("/")[2] or reference


def summary_facts(view: DiffView) -> Iterator[Fact]:
    """The whole in some lines: verdict, sides, counts, and what could not be compared."""
    verdict, state = view.verdict
    yield Fact("verdict", verdict, state)
    result = view.result
    for side, reference, tensors in (
        ("A", view.a, result.tensors_a if result else None),
        ("B", view.b, result.tensors_b if result else None),
    ):
        yield Fact(side, reference if tensors is None else f"{reference}   {counted(tensors, 'tensor')}")
    if result is None:
        return
    yield Fact("", "")
    yield from _tensor_facts(result, view.differences.rules if view.differences else ())
    yield from _value_facts(result, view)
    for name, title in SECTIONS.items():
        found = getattr(result, name)
        yield Fact(title, f"{counted(len(found), 'difference')}" if found else "the same", "warn" if found else "")
    if result.whole:
        listed = "lists end early: all differences are in a file of the job"
        yield Fact("all of it", f"{result.whole}  ({listed})")
    yield from _told("not compared", result.problems, "error")
    yield from _told("note", result.notes, "muted")


def _tensor_facts(result: DiffResult, rules: tuple[str, ...]) -> Iterator[Fact]:
    counts = result.counts
    yield Fact("tensors", f"{result.compared:,} on both sides")
    for kind in (*TENSOR_KINDS, "unread"):
        if count := counts.get(kind):
            yield Fact(kind, f"{count:,}{_explained(kind, rules)}", "muted" if kind == "renamed" else "warn")
    for clash in result.clashes[:MOST_CLASHES]:
        names = (
            f"{counted(len(clash.a), 'tensor')} of A, such as {clash.a[0]}, and {counted(len(clash.b), 'tensor')} of B"
        )
        yield Fact("name clash", f"{names} would all be {clash.name}: none is renamed", "warn")
    if len(result.clashes) > MOST_CLASHES:
        yield Fact("", f"and {len(result.clashes) - MOST_CLASHES:,} more clashes")


def _explained(kind: str, rules: tuple[str, ...]) -> str:
    if kind == "unread":
        return ": the other side may hold them in a file that could not be read"
    if kind == "renamed" and rules:
        return f" by {', '.join(rules[:3])}" + (f" and {len(rules) - 3:,} more rules" if len(rules) > 3 else "")
    return ""


def _value_facts(result: DiffResult, view: DiffView) -> Iterator[Fact]:
    if result.values is None:
        if result.compared:
            yield Fact("values", "are being compared" if view.job else "not compared; v compares them", "muted")
        return
    counts = result.counts
    told = [f"{counts[kind]:,} {kind}" for kind in VALUE_KINDS if counts.get(kind)]
    told += [f"{counts['shape']:,} of another shape"] if counts.get("shape") else []
    apart = counts.get("differ") or counts.get("close") or counts.get("unknown")
    yield Fact("values", ", ".join(told) or "none to compare", "warn" if apart else "ok")
    for each in result.tolerances if apart else ():
        rule = f"|a-b| <= {each.atol:.3g} + {each.rtol:.3g} max(|a|,|b|)"
        yield Fact("close means", f"{rule}  ({each.dtypes}: {each.name})", "muted")


def _told(label: str, problems: tuple[Problem, ...], state: State) -> Iterator[Fact]:
    for place, problem in enumerate(problems):
        yield Fact("" if place else label, str(problem), state)
