"""One report in the format that was asked for."""

from __future__ import annotations

from hfbench.compare.result import CompareResult
from hfbench.compare.subject import Subject
from hfbench.reports.document import Document
from hfbench.reports.well_formed import well_formed, writable

SUFFIXES = {"md": ".md", "html": ".html", "csv": ".csv", "json": ".json", "junit": ".xml"}
BY_SUFFIX = {suffix: name for name, suffix in SUFFIXES.items()} | {".htm": "html", ".markdown": "md"}


def render(format: str, document: Document, subject: Subject, comparison: CompareResult | None) -> str:
    """The text of a report; MissingError where a library of the format is not installed."""
    match format:
        case "html":
            from hfbench.reports.html import html

            return well_formed(html(document))
        case "csv":
            from hfbench.reports.data import csv_text

            return writable(csv_text(subject))
        case "json":
            from hfbench.reports.data import json_text

            return json_text(subject, comparison)
        case "junit":
            from hfbench.reports.junit import junit

            return well_formed(junit(subject, comparison))
        case _:
            from hfbench.reports.markdown import markdown

            return writable(markdown(document))
