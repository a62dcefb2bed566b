"""Textual's style sheets, parsed once a process: they are a tenth of what a test of a screen costs, always the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet


@pytest.fixture(autouse=True, scope="session")
def style_sheets_parsed_once() -> Iterator[None]:
    """Applications that give the same text the same variables share its rules, which nobody changes once parsed."""
    parsed: dict[Any, Any] = {}
    parse = Stylesheet._parse_rules

    def parse_once(sheet: Stylesheet, css: str, *where: Any, **how: Any) -> Any:
        asked = (tuple(sheet._variables.items()), css, where, tuple(how.items()))
        if asked not in parsed:
            parsed[asked] = parse(sheet, css, *where, **how)
        return parsed[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield
