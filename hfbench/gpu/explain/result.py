"""The result of gpus.explain, and how a person reads it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from hfbench.gpu.explain.picture import Cause, Explanation, MemoryPicture
from hfbench.text import clip, printable
from hfbench.units import show_bytes

WIDTH = 80
LABEL = 10
PARTS = (
    ("request", "asked for in one piece"),
    ("total", "the device has"),
    ("card_total", "the whole card has"),
    ("cap", "this process may use"),
    ("free", "free on the device"),
    ("process_used", "held by this process"),
    ("reserved", "reserved by torch"),
    ("allocated", "held by live tensors"),
    ("cached", "reserved, held by no tensor"),
    ("largest_free", "largest free piece"),
    ("inactive_split", "free, in segments in use"),
    ("private_reserved", "private pools of graphs"),
    ("private_cached", "free in private pools"),
    ("non_torch", "not torch's, in this process"),
    ("reserved_peak", "most torch ever reserved"),
    ("sampled_peak", "most that samples saw"),
    ("driver", "held by the driver"),
    ("unlisted", "held by nobody listed"),
)
"""Parts of a picture in the order they are told, and what each is."""


@dataclass(frozen=True, kw_only=True)
class ExplainResult:
    """What was explained, one device each. `failed` when an allocation was refused."""

    explanations: tuple[Explanation, ...]
    reason: str = ""
    """Why there is nothing to explain."""

    @property
    def failed(self) -> bool:
        """True when what is explained is a failure."""
        return any(each.picture.failed for each in self.explanations)

    @property
    def exit(self) -> int:
        """0: a failure that is explained is what was asked for."""
        return 0

    @property
    def headline(self) -> str:
        """The first cause, or that there is none."""
        causes = [each.cause.title for each in self.explanations if each.cause]
        return causes[0] if causes else self.reason or "no cause found"

    def lines(self) -> list[str]:
        """Each device: the cause with evidence and remedy, then the parts; at most 80 columns."""
        told = [line for each in self.explanations for line in [*_explanation(each), ""]]
        return told[:-1] if told else _wrapped("reason", self.reason)


def _explanation(explanation: Explanation) -> Iterator[str]:
    picture = explanation.picture
    name = " ".join(filter(None, [picture.device or "a device", picture.card]))
    what = "an allocation failed" if picture.failed else "as it is now"
    yield clip(printable(f"{name}: {what}"), WIDTH, ellipsis="...")
    for number, cause in enumerate(explanation.causes):
        label = _label(cause, first=number == 0, failed=picture.failed)
        yield from _wrapped(label, f"{cause.title} [{cause.id}]")
        yield from _wrapped("", cause.evidence)
        yield from _wrapped("", f"next: {cause.remedy}")
    if not explanation.causes:
        unexplained = "nothing that is known explains it" if picture.failed else "nothing stands out"
        yield from _wrapped("cause", unexplained)
    yield ""
    yield from _parts(picture)
    if explanation.sources:
        yield from _wrapped("from", ", ".join(explanation.sources))
    for note in explanation.notes:
        yield from _wrapped("note", note)


def _label(cause: Cause, *, first: bool, failed: bool) -> str:
    """What alone explains a failure is the cause; a second such is as good a one to mend."""
    if not failed:
        return "seen" if first else "also"
    if cause.enough:
        return "cause" if first else "or"
    return "likely" if first else "also"


def _parts(picture: MemoryPicture) -> Iterator[str]:
    """One line each part that is known; numbers are right-aligned and never cut."""
    for name, meaning in PARTS:
        if (value := getattr(picture, name)) is not None:
            yield f"{meaning:<32}{show_bytes(value):>12}"
    for other in picture.others:
        held = "not told" if other.bytes is None else show_bytes(other.bytes)
        yield clip(printable(f"{f'pid {other.pid}':<32}{held:>12}  {other.who}").rstrip(), WIDTH, ellipsis="...")


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=f"{label:<{LABEL}}",
        subsequent_indent=" " * LABEL,
        break_on_hyphens=False,
    )
