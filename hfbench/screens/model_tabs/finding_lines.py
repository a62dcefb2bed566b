"""Verdicts and findings as lines: each a sign and a sentence, and what to do in a quieter colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from hfbench.checks.finding import SEVERITIES, Finding
from hfbench.errors import begun
from hfbench.models.problem import counted
from hfbench.screens.model_tabs.verdict_lines import verdict_lines
from hfbench.screens.model_view import SIGNS, ModelView
from hfbench.text import printable
from hfbench.widgets.cells import Span, width_of
from hfbench.widgets.facts_lines import wrapped
from hfbench.widgets.glyphs import Glyphs
from hfbench.widgets.line_table import MARK

MOST_ALIKE = 4
"""Findings of one rule that stand in the list; a folder with a thousand files missing says so in a few."""

FINDING, OTHERS = "finding ", "others "
"""What the key of an entry begins with; the place of its finding follows."""

SIGN_CELLS = 3
INDENT = MARK + SIGN_CELLS

Line = tuple[str, list[Span]]
"""The key of the entry a line belongs to, empty for titles, and what is painted."""


def findings_title(findings: Sequence[Finding], glyphs: Glyphs, note: str = "") -> list[Span]:
    """`Findings (2 errors, 1 warning)`, and what is still under way."""
    counts = Counter(each.severity for each in findings)
    told = [counted(counts[severity], severity) for severity in SEVERITIES if counts[severity]]
    title = f"Findings ({', '.join(told)})" if told else "Findings"
    return [(title, "title"), (f" {glyphs.dot} {note}" if note else "", "muted")]


def finding_lines(findings: Sequence[Finding], width: int, glyphs: Glyphs, *, under_way: bool) -> Iterator[Line]:
    """Lines of at most `width` cells, the findings in the order given; where there is none, that."""
    numbers = iter(range(len(findings)))
    for _, run in groupby(numbers, lambda number: kind_of(findings[number])):
        alike = list(run)
        kept = alike if len(alike) <= MOST_ALIKE + 1 else alike[:MOST_ALIKE]
        for number in kept:
            yield from _one_finding(finding_key(number), findings[number], width, glyphs)
        if len(kept) < len(alike):
            rule = findings[alike[0]].id or "this kind"
            text = f"and {len(alike) - len(kept):,} more of {rule}"
            yield f"{OTHERS}{alike[len(kept)]}", [(" " * MARK, ""), (" " * SIGN_CELLS, ""), (text, "muted")]
    if not findings:
        sign = "" if under_way else glyphs.ok
        text = "none so far" if under_way else "nothing wrong was found"
        yield "", [(" " * MARK, ""), (sign.ljust(SIGN_CELLS), "ok"), (text, "muted" if under_way else "ok")]


def _one_finding(key: str, finding: Finding, width: int, glyphs: Glyphs) -> Iterator[Line]:
    state = SIGNS[finding.severity]
    head: list[Span] = [((glyphs.sign(state) or glyphs.unknown).ljust(SIGN_CELLS), state)]
    for part in _flowing(*sentences_of(finding), max(1, width - INDENT)):
        yield key, [(" " * MARK, ""), *head, *part]
        head = [(" " * SIGN_CELLS, "")]


def sentences_of(finding: Finding) -> tuple[str, str]:
    """What was found, with its id and its file, and what to do; both safe to paint."""
    place = f"{finding.file}: " if finding.file else ""
    found = " ".join(filter(None, [finding.id, printable(f"{place}{finding.message}")])).rstrip(".")
    remedy = f"{begun(printable(finding.remedy)).rstrip('.')}." if finding.remedy else ""
    return f"{found}." if remedy else found, remedy


def kind_of(finding: Finding) -> tuple[str, str, str]:
    """What findings have in common that are told together when there are many."""
    return finding.severity, finding.id, finding.name


def finding_key(number: int) -> str:
    """The key of a finding by its place in the list."""
    return f"{FINDING}{number}"


def _flowing(sentence: str, remedy: str, width: int) -> Iterator[list[Span]]:
    """Sentence and remedy as one paragraph, the remedy in a quieter colour."""
    *lines, last = wrapped(sentence, width)
    yield from ([(line, "")] for line in lines)
    if not remedy:
        yield [(last, "")]
        return
    taken = width_of(last)
    first, *others = wrapped(f"{'x' * taken} {remedy}", width)  # goes on where the sentence ends
    yield [(last, ""), (first[taken:], "muted")]
    yield from ([(line, "muted")] for line in others)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the list is made from; the same twice is laid out once."""

    view: ModelView
    findings: tuple[Finding, ...]
    spaced: bool
    """Whether there is room for an empty line between the two."""

    def lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """Verdicts, a line each, then the findings."""
        judgement = self.view.judgement
        lines: list[Line] = list(verdict_lines(self.view, width, glyphs))
        checking = judgement.under_way and judgement.check is None and self.view.error is None
        note = "checking" if checking else ""
        if self.view.error is not None and not self.findings:
            return lines  # the notice on top says it: nothing could be read, so nothing is fine either
        lines += [("", [])] if lines and self.spaced else []
        lines.append(("", findings_title(self.findings, glyphs, note)))
        for trouble in judgement.troubles:
            head: Span = (glyphs.warn.ljust(SIGN_CELLS), "warn")
            for part in wrapped(str(trouble), width - INDENT):
                lines.append(("", [(" " * MARK, ""), head, (part, "")]))
                head = (" " * SIGN_CELLS, "")
        if self.findings or not judgement.troubles:
            lines += finding_lines(self.findings, width, glyphs, under_way=self.view.reading or checking)
        return lines
