"""A report as one HTML page that needs nothing else: no network, no script, light and dark."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hfbench.errors import MissingError
from hfbench.reports.document import (
    BarPlot,
    Code,
    Document,
    Facts,
    HeatPlot,
    ParetoPlot,
    Points,
    RatioPlot,
    SamplesPlot,
    Table,
)

NEEDS = ("jinja2", "matplotlib")
PAGE = "page.html.j2"
KINDS: dict[type, str] = {
    Facts: "facts",
    Points: "points",
    Table: "table",
    Code: "code",
    SamplesPlot: "plot",
    HeatPlot: "plot",
    BarPlot: "plot",
    ParetoPlot: "plot",
    RatioPlot: "plot",
}


def html(document: Document) -> str:
    """The page; MissingError where the extra `report` is not installed."""
    if lacking := [name for name in NEEDS if find_spec(name) is None]:
        raise MissingError(
            f"an HTML report needs {' and '.join(lacking)}, which this Python lacks",
            where="report",
            remedy="install it with: pip install 'hfbench[report]', or write Markdown with --format md",
        )
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from hfbench.reports.plots import svg

    drawn = 0

    def draw(plot: Any) -> Markup:
        nonlocal drawn
        drawn += 1
        return Markup(svg(plot, drawn))

    page = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.filters.update(kind=lambda block: KINDS.get(type(block), "text"), draw=draw, anchor=anchor)
    return page.get_template(PAGE).render(document=document)


def anchor(title: str) -> str:
    """The id of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
