"""Drawings of matplotlib as elements of a page: colours and font are the page's, ids are the drawing's own."""

from __future__ import annotations

import re
from xml.sax.saxutils import quoteattr

INK, MUTED, GRID, PAPER = "#010101", "#010102", "#010103", "#010104"
FIRST, SECOND, GOOD, BAD, OPEN = "#010105", "#010106", "#010107", "#010108", "#010109"
BAND = "#01010a"
STEPS = tuple(f"#0102{step:02x}" for step in range(7))
"""Colours of a heat map from best to worst; the page says what each is."""
VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
    FIRST: "--first",
    SECOND: "--second",
    GOOD: "--good",
    BAD: "--bad",
    OPEN: "--open",
    BAND: "--band",
    **{colour: f"--heat-{step}" for step, colour in enumerate(STEPS)},
}
SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hfbench",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
PROLOGUE = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
UNWANTED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
SIZE = re.compile(r'\s(?:width|height)="[\d.]+pt"')
FAMILY = re.compile(r"font-family:[^;\"]*;?\s*")
IDS = re.compile(r'(?<= id=")|(?<=url\(#)|(?<=href="#)')
COLOUR = re.compile("|".join(VARIABLES))


def for_page(drawing: str, number: int, title: str) -> str:
    """The `<svg>` element of a file that was drawn with `SETTINGS` and the colours above.

    `number` tells its ids from those of others on the page; `title` is what a screen reader says.
    """
    text = UNWANTED.sub("", PROLOGUE.sub("", drawing))
    head, end, body = text.partition(">")
    text = SIZE.sub("", head) + end + body
    text = COLOUR.sub(lambda match: f"var({VARIABLES[match.group()]})", FAMILY.sub("", text))
    text = IDS.sub(f"plot{number}-", text)
    return text.replace("<svg ", f'<svg role="img" aria-label={quoteattr(title)} ', 1).strip()
