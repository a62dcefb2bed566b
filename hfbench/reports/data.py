"""A report as data: CSV of every metric of every cell, and JSON with all samples."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import hfbench
from hfbench.codec import encode
from hfbench.compare.metrics import STATISTICS, metrics_of
from hfbench.compare.result import CompareResult
from hfbench.compare.subject import Measured, Subject
from hfbench.reports.axes import axes_of, axis_word
from hfbench.text import printable

VERSION = 1
FIXED = ("step", "action", "model", "job", "on", "host", "state", "reason", "metric", "unit")
ENDS = ("ci_low", "ci_high")
FORMULA = re.compile(r"[=+\-@\t\r]")
"""How a text begins that a spreadsheet would take for a formula."""


def csv_text(subject: Subject) -> str:
    """A row a metric of each step, in base units; a step without metrics has one row."""
    axes = list(axes_of(subject.measured))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*map(harmless, axes), *FIXED, *STATISTICS, *ENDS, "n"])
    for each in subject.measured:
        place = [harmless(axis_word(each, name)) for name in axes]
        for row in _rows(each):
            writer.writerow([*place, *row])
    return out.getvalue()


def json_text(subject: Subject, comparison: CompareResult | None) -> str:
    """Everything, with all samples; `hfbench compare` and `hfbench report` read it again."""
    data: dict[str, Any] = {
        "v": VERSION,
        "report": subject.name,
        "hfbench": hfbench.__version__,
        "made": time.time(),
        "subject": encode(subject),
        "comparison": encode(comparison),
    }
    return json.dumps(data, ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def harmless(text: str) -> str:
    """A text on one line that a spreadsheet takes for a text."""
    text = printable(text)
    if not FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _rows(measured: Measured) -> Iterator[list[object]]:
    host = str(measured.environment.get("host") or "")
    about = (measured.step, measured.action, measured.model, measured.job, measured.on, host)
    fixed = [*map(harmless, (*about, measured.state, measured.reason))]
    found = metrics_of(measured.result)
    for name, metric in found.items():
        known = [metric.statistic(each) for each in (*STATISTICS, *ENDS)]
        figures = ["" if each is None else repr(each) for each in known]
        yield [*fixed, harmless(name), harmless(metric.unit), *figures, metric.count]
    if not found:
        yield [*fixed, "", "", *("" for _ in (*STATISTICS, *ENDS)), ""]
