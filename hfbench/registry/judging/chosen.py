"""The rules that judge a commit. Importing this loads all that they need, which takes far longer than one judgement."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hfbench.checks.base import rules
from hfbench.checks.run import report_on
from hfbench.checks.subject import Subject
from hfbench.models.reference import Location

PASSED_OVER = ("templates", "values", "pickles", "scanned")
"""Groups of rules that run something or read whole weights."""
NEEDED = ("HB502",)
"""Rules whose findings are no errors to whoever loads a model, and are to whoever keeps it for others: no tokenizer."""
CHOSEN = [rule for rule in rules().values() if rule.judge.__module__.rpartition(".")[2] not in PASSED_OVER]


def problems_of(folder: Path, name: str) -> list[list[str]]:
    """Triples of a rule's id, the file and a sentence."""
    report = report_on(Subject(Location(name, folder, "local")), CHOSEN)
    wrong = [each for each in report.findings if each.severity == "error" or each.id in NEEDED]
    return [[each.id, each.file, each.message] for each in wrong]


with tempfile.TemporaryDirectory() as _empty:
    problems_of(Path(_empty), "nothing")  # rules import what they need when they are first asked
