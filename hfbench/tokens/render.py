"""Runs the process that renders chat templates, and says what became of each."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import Any, Literal

from hfbench.tokens.child import cpu_seconds, start
from hfbench.tokens.templates_text import Template

Outcome = Literal[
    "ok", "silent", "raises", "fails", "syntax", "unsafe", "memory", "timeout", "not tried", "too long", "no jinja2"
]

WALL_SECONDS = 3.0
"""On the wall, for all templates of a model: the CPU time of one may be long in coming on a busy machine."""

STARVED_SECONDS = 0.4
"""CPU time of a process: one that got no more in all that time is not to blame, and neither is its template."""

PATIENCE = 12.0
"""More seconds on the wall for such a process: what is found in a model must not depend on what else runs here."""

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
    attempts = [Attempt(each, "compile", "too long") for each in templates if each.too_long]
    left = [number for number, each in enumerate(templates) if not each.too_long]
    until = monotonic() + WALL_SECONDS
    for _ in range(MOST_STARTS):
        if not left:
            break
        lines, ending = _run(
            {"templates": [_plain(each) for each in templates], "numbers": left, "tokens": dict(tokens)}, until
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
        left = [number for number in left if number not in begun] if ending else []
        if ending == "not tried":
            break
    return attempts + [Attempt(templates[number], "render", "not tried") for number in left]


def _run(request: dict[str, object], until: float) -> tuple[list[dict[str, Any]], Outcome | None]:
    """The lines of one process, and how it was ended when it did not end by itself."""
    with start("hfbench.tokens.render_child") as child:
        output, spent = _output(child, json.dumps(request).encode(), until)
    lines = [json.loads(line) for line in output.splitlines() if line.endswith(b"}")]
    if child.returncode == 0:
        return lines, None
    if spent is not None:
        return lines, "timeout" if spent > STARVED_SECONDS else "not tried"
    return lines, "timeout" if child.returncode in (-signal.SIGPROF, -signal.SIGKILL) else "memory"


def _output(child: subprocess.Popen[bytes], request: bytes, until: float) -> tuple[bytes, float | None]:
    """What a process wrote, and the CPU seconds it had when the clock ended it."""
    ended, late = Event(), []

    def watch() -> None:
        if ended.wait(max(until - monotonic(), 0.0)):
            return
        if cpu_seconds(child.pid) <= STARVED_SECONDS and ended.wait(PATIENCE):
            return
        late.append(cpu_seconds(child.pid))
        child.kill()

    watcher = Thread(target=watch)
    watcher.start()
    try:
        output, _ = child.communicate(request)
    finally:
        ended.set()
        watcher.join()
    return output, late[0] if late else None


def _plain(template: Template) -> dict[str, str]:
    return {"name": template.name, "text": template.text}
