"""What an explanation of a device's memory says, as facts: the causes with evidence and remedy, then every part."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.gpu.explain.picture import Explanation, MemoryPicture
from hfbench.gpu.explain.result import PARTS
from hfbench.units import show_bytes
from hfbench.widgets.facts_lines import Fact

MEANING, FIGURE = 30, 10
"""Cells of what a part is, and of its bytes."""


def memory_facts(explanation: Explanation) -> list[Fact]:
    """The facts of one device; what alone explains a failure is called its cause, all else is only seen."""
    facts = [fact for number in range(len(explanation.causes)) for fact in _cause(explanation, number)]
    if not facts:
        failed = explanation.picture.failed
        what = "nothing that is known explains it" if failed else "nothing stands out"
        facts.append(Fact("cause", what, "unknown" if failed else "ok"))
    facts += [Fact("", ""), *_parts(explanation.picture)]
    if explanation.sources:
        facts += [Fact("", ""), Fact("from", ", ".join(explanation.sources), "muted")]
    facts += [Fact("note", note, "muted") for note in explanation.notes]
    return facts


def _cause(explanation: Explanation, number: int) -> Iterator[Fact]:
    cause, failed = explanation.causes[number], explanation.picture.failed
    if failed:
        label = ("or" if number else "cause") if cause.enough else ("also" if number else "likely")
    else:
        label = "also" if number else "seen"
    yield Fact(label, f"{cause.title} [{cause.id}]", "error" if failed and cause.enough else "warn")
    yield Fact("evidence", cause.evidence)
    yield Fact("remedy", cause.remedy)


def _parts(picture: MemoryPicture) -> Iterator[Fact]:
    label = "memory"
    for name, meaning in PARTS:
        if (value := getattr(picture, name)) is not None:
            yield Fact(label, f"{meaning:<{MEANING}}{show_bytes(value):>{FIGURE}}")
            label = ""
    label = "others"
    for other in picture.others:
        held = "not told" if other.bytes is None else show_bytes(other.bytes)
        yield Fact(label, f"{f'pid {other.pid}':<{MEANING}}{held:>{FIGURE}}  {other.who}".rstrip())
        label = ""
