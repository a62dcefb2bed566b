"""Renders all chat templates of a model in a process of its own, which its limits may end.

`python -m hfbench.tokens.render_child` reads one JSON object from stdin and writes one JSON line for each attempt.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from hfbench.tokens.conversation import SAMPLE_TOOLS
from hfbench.tokens.limits import limit_memory, limit_seconds
from hfbench.tokens.sandbox import Rendering, Templates, in_parts, render

SECONDS = 1.0
"""CPU time for one template: real ones take milliseconds."""

MEMORY = 128 * 2**20
"""Bytes of address space that rendering may add to those of the interpreter."""

WORDS = "Hello there"
"""What the user says; a template that never shows it is broken."""

CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "user": [{"role": "user", "content": WORDS}],
    "system": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": WORDS}],
    "turns": [
        {"role": "user", "content": WORDS},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Go on."},
    ],
}


def main() -> None:
    """Serve one request."""
    request = json.loads(sys.stdin.buffer.read())
    try:
        templates = Templates()
    except ImportError as error:
        _tell({"outcome": "no jinja2", "detail": str(error)})
        return
    limit_memory(MEMORY)
    for number in request["numbers"]:
        template = request["templates"][number]
        _tell({"template": number, "begun": True})
        limit_seconds(SECONDS)
        for case, told in _attempts(templates, template, request["tokens"]):
            _tell({"template": number, "case": case, "outcome": told.fate, "detail": told.detail[:300]})


def _attempts(
    templates: Templates, template: Mapping[str, str], tokens: Mapping[str, str]
) -> Iterable[tuple[str, Rendering]]:
    compiled, told = templates.compile(template["text"])
    if compiled is None:
        yield "compile", told
        return
    named = template["name"] != "default"
    values = {"tools": SAMPLE_TOOLS, "documents": [{"title": "Note", "text": "A line."}]} if named else {}
    for case, messages in CONVERSATIONS.items():
        told = render(compiled, messages, {**tokens, **values}, words=WORDS, prompt=True)
        if told.fate in ("fails", "silent"):  # templates of multimodal models want content in parts
            again = render(compiled, in_parts(messages), {**tokens, **values}, words=WORDS, prompt=True)
            told = again if again.fate == "ok" else told
        yield case, told


def _tell(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
