"""Findings as lines: sign, place, sentence, and below it what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from textual.events import Resize
from textual.widgets import Static

from hfbench.models.problem import Problem
from hfbench.screens.model_view import SIGNS
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import wrapped
from hfbench.widgets.facts_table import content_of
from hfbench.widgets.glyphs import Glyphs, State, glyphs_of

MOST = 100
"""Findings shown; a folder with a thousand shards missing says so in a few."""

SIGN_CELLS = 3


def findings_title(problems: Sequence[Problem]) -> str:
    """`Findings (2 errors, 1 warning)`; notes are not counted."""
    counts = Counter(problem.severity for problem in problems)
    told = [
        f"{count} {word}{'s' * (count != 1)}"
        for word, count in (("error", counts["error"]), ("warning", counts["warning"]))
        if count
    ]
    return f"Findings ({', '.join(told)})" if told else "Findings"


def findings_lines(problems: Sequence[Problem], width: int, glyphs: Glyphs, *, reading: bool) -> list[list[Span]]:
    """Lines of at most `width` cells, the findings in the order given."""
    lines: list[list[Span]] = [[(findings_title(problems), "title")]]
    for problem in problems[:MOST]:
        state = SIGNS[problem.severity]
        sign = (glyphs.sign(state) or "-").ljust(SIGN_CELLS)
        sentence = f"{problem.where}: {problem.found}" if problem.where else problem.found
        for number, part in enumerate(wrapped(sentence, max(1, width - SIGN_CELLS))):
            lines.append([(" " * SIGN_CELLS if number else sign, state), (part, "")])
        if problem.remedy:
            remedy = wrapped(problem.remedy, max(1, width - SIGN_CELLS))
            lines += [[(" " * SIGN_CELLS, ""), (part, "muted")] for part in remedy]
    if len(problems) > MOST:
        lines.append([(f"{' ' * SIGN_CELLS}and {len(problems) - MOST:,} more", "muted")])
    if not problems:
        state_now: State = "muted" if reading else "ok"
        sign = glyphs.sign(state_now).ljust(SIGN_CELLS) if not reading else ""
        lines.append([(sign, state_now), ("none so far" if reading else "nothing wrong was found", state_now)])
    return lines


def worst_state(problems: Sequence[Problem]) -> State:
    """How the whole is painted: by its severest finding."""
    severities = {problem.severity for problem in problems}
    return "error" if "error" in severities else "warn" if "warning" in severities else "ok"


class Findings(Static):
    """The findings of a model, as text that can be selected."""

    DEFAULT_CSS = "Findings { height: auto; width: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.problems: tuple[Problem, ...] = ()
        self.reading = True

    def show(self, problems: Sequence[Problem], *, reading: bool) -> None:
        """Show these."""
        self.problems, self.reading = tuple(problems), reading
        self._lay_out()

    def on_resize(self, event: Resize) -> None:
        """Break lines anew."""
        self._lay_out()

    def _lay_out(self) -> None:
        if self.is_attached:
            width = self.size.width or 80
            self.update(content_of(findings_lines(self.problems, width, glyphs_of(self.app), reading=self.reading)))
