"""Runs the process that renders chat templates, and says what became of each."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hfbench.tokens.child import start
from hfbench.tokens.templates_text import Template

Outcome = Literal["ok", "silent", "raises", "fails", "syntax", "unsafe", "memory", "timeout", "not tried", "no jinja2"]

WALL_SECONDS = 20.0
"""A process that gets no CPU time at all is ended too."""

MOST_STARTS = 2
"""Processes for one model: the second one takes the templates after the one that killed the first."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of one template in one conversation; `case` is `compile` when it came to none."""

    template: Template
    case: str
    outcome: Outcome
    detail: str = ""


def render(templates: Sequence[Template], tokens: Mapping[str, str]) -> list[Attempt]:
    """Every attempt on every template. Nothing here raises for what a template does."""
    attempts: list[Attempt] = []
    left = list(range(len(templates)))
    for _ in range(MOST_STARTS):
        if not left:
            break
        lines, ending = _run(
            {"templates": [_plain(each) for each in templates], "numbers": left, "tokens": dict(tokens)}
        )
        attempts += [
            Attempt(templates[line["template"]], line["case"], line["outcome"], line["detail"])
            for line in lines
            if "case" in line
        ]
        if lines and lines[-1].get("outcome") == "no jinja2":
            return [Attempt(templates[0], "compile", "no jinja2", lines[-1]["detail"])]
        begun = [line["template"] for line in lines if "begun" in line]
        if ending and begun:
            attempts.append(Attempt(templates[begun[-1]], "render", ending))
        left = [number for number in left if number not in begun] if ending and begun else []
    return attempts + [Attempt(templates[number], "render", "not tried") for number in left]


def _run(request: dict[str, object]) -> tuple[list[dict[str, Any]], Outcome | None]:
    """The lines of one process, and how it was ended when it did not end by itself."""
    with start("hfbench.tokens.render_child") as child:
        try:
            output, _ = child.communicate(json.dumps(request).encode(), timeout=WALL_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            output, _ = child.communicate()
    lines = [json.loads(line) for line in output.splitlines() if line.endswith(b"}")]
    if child.returncode == 0:
        return lines, None
    return lines, "timeout" if child.returncode in (-signal.SIGPROF, -signal.SIGKILL) else "memory"


def _plain(template: Template) -> dict[str, str]:
    return {"name": template.name, "text": template.text}
