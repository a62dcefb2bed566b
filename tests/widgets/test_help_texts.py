"""Help: every text of it, whatever holds it, is paragraphs that the panel breaks; no line ends within a sentence."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import hfbench.screens
import hfbench.widgets
from hfbench.screens.diff_tabs.base import DiffTab
from hfbench.screens.model_tabs.base import ModelTab
from hfbench.widgets.cells import spans_width
from hfbench.widgets.help import Help, told_by
from hfbench.widgets.help_lines import help_lines


def modules() -> Iterator[ModuleType]:
    for room in (hfbench.screens, hfbench.widgets):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            yield importlib.import_module(found.name)


def helps() -> dict[str, str]:
    """Every Help of a class, every one made in the source from plain texts, and those made of docstrings."""
    texts: dict[str, str] = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, type) and isinstance(found := vars(value).get("help"), Help):
                texts[f"{module.__name__}.{name}"] = found.text
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Help" and len(node.args) == 2:
                text = node.args[1]
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    texts[f"{module.__name__}:{node.lineno}"] = text.value
                else:
                    assert "__doc__" not in ast.unparse(text), "told_by makes paragraphs of a docstring"
    pending: list[type] = [DiffTab, ModelTab]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.__module__.startswith("hfbench.") and inspect.getdoc(kind):
            texts[f"{kind.__module__}.{kind.__name__} told"] = told_by(kind)
    return texts


HELPS = helps()


def test_there_are_helps_to_look_at() -> None:
    assert len(HELPS) > 40


@pytest.mark.parametrize("name", HELPS)
@pytest.mark.parametrize("terminal", [60, 80, 120])
def test_a_text_is_paragraphs_and_its_lines_are_as_long_as_they_can_be(name: str, terminal: int) -> None:
    text, width = HELPS[name], min(60, terminal) - 6
    assert "  " not in text
    for paragraph in text.splitlines():
        assert paragraph == paragraph.strip()
        assert paragraph.endswith((".", ":")) or paragraph == text, (
            f"a line ends within a sentence: {paragraph[-40:]!r}"
        )
    lines = help_lines(Help("Title", text), (), width)
    assert all(spans_width(line) <= width for line in lines)
    assert len(lines) - 1 == sum(len(help_lines(Help("", each), (), width)) - 1 for each in text.splitlines())


def test_a_docstring_becomes_paragraphs() -> None:
    class Told:
        """One sentence.

        A second paragraph, which goes
        on here.
        """

    assert told_by(Told) == told_by(Told()) == "One sentence.\nA second paragraph, which goes on here."
