"""Renders chat templates in a process of its own, which its limits may kill.

`python -m hfbench.checks.render_child` reads one JSON object from stdin and writes one JSON line for each attempt.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SECONDS = 1.0
"""CPU time for one template: real ones take milliseconds."""

MEMORY = 128 * 2**20
"""Bytes of address space that rendering may add to those of the interpreter."""

LONGEST_TEXT = 4 * 2**20
"""Characters of output for three sentences of input."""

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

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "clock",
            "description": "Tells the time.",
            "parameters": {"type": "object", "properties": {"zone": {"type": "string", "description": "Time zone"}}},
        },
    }
]

_DUNDER = re.compile(r"__\w+__")
_INTERNAL = re.compile(r"__(?:class|globals|mro|bases?|subclasses|init|builtins|import|getattribute|dict|code)__")
"""Also inside a longer text, such as one given to format."""


class Raised(Exception):
    """The template called raise_exception."""


def main() -> None:
    """Serve one request."""
    request = json.loads(sys.stdin.buffer.read())
    try:
        environment = _environment()
    except ImportError as error:
        _tell({"outcome": "no jinja2", "detail": str(error)})
        return
    _limit_memory()
    for number in request["numbers"]:
        template = request["templates"][number]
        _tell({"template": number, "begun": True})
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # the default action of SIGPROF ends the process, even inside C
        for case, outcome, detail in _attempts(environment, template, request["tokens"]):
            _tell({"template": number, "case": case, "outcome": outcome, "detail": detail[:300]})


def _attempts(
    environment: Any, template: Mapping[str, str], tokens: Mapping[str, str]
) -> Iterable[tuple[str, str, str]]:
    import jinja2

    try:
        reached = _reaches(environment, template["text"])
        compiled = environment.from_string(template["text"])
    except jinja2.TemplateSyntaxError as error:
        yield "compile", "syntax", f"line {error.lineno}: {error.message}"
    except MemoryError:
        yield "compile", "memory", ""
    except Exception as error:  # whatever a hostile template makes of the compiler
        yield "compile", "syntax", f"{type(error).__name__}: {error}"
    else:
        if reached:
            yield "compile", "unsafe", reached
            return
        named = (
            {"tools": TOOLS, "documents": [{"title": "Note", "text": "A line."}]}
            if template["name"] != "default"
            else {}
        )
        for case, messages in CONVERSATIONS.items():
            outcome, detail = _render(compiled, messages, named, tokens)
            if outcome in ("fails", "silent"):  # templates of multimodal models want content in parts
                parts = [{**each, "content": [{"type": "text", "text": each["content"]}]} for each in messages]
                again, said = _render(compiled, parts, named, tokens)
                outcome, detail = (again, said) if again == "ok" else (outcome, detail)
            yield case, outcome, detail


def _render(compiled: Any, messages: Any, named: Mapping[str, Any], tokens: Mapping[str, str]) -> tuple[str, str]:
    import jinja2
    from jinja2.exceptions import SecurityError

    values = {"tools": None, "documents": None, **tokens, **named}
    try:
        parts, length = [], 0
        for part in compiled.generate(messages=json.loads(json.dumps(messages)), add_generation_prompt=True, **values):
            length += len(part)
            if length > LONGEST_TEXT:
                return "memory", f"more than {LONGEST_TEXT:,} characters"
            parts.append(part)
        return ("ok", "") if WORDS in "".join(parts) else ("silent", "")
    except Raised as error:
        return "raises", str(error)
    except SecurityError as error:
        return "unsafe", str(error)
    except (MemoryError, OverflowError) as error:
        return "memory", str(error)
    except jinja2.TemplateSyntaxError as error:
        return "syntax", error.message or ""
    except Exception as error:  # anything may happen in a template
        return "fails", f"{type(error).__name__}: {error}"


def _environment() -> Any:
    """An environment as transformers makes it: sandboxed, with the same extras."""
    import jinja2.ext
    from jinja2.nodes import CallBlock, Const
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(jinja2.ext.Extension):
        """Takes the `generation` tag, which marks the assistant's words, for its content."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return CallBlock(self.call_method("_content", [Const(None)]), [], [], body).set_lineno(line)

        def _content(self, _: object, caller: Any) -> Any:
            return caller()

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _strftime
    return environment


def _reaches(environment: Any, text: str) -> str:
    """The first name of Python's internals that a template spells out, empty when there is none."""
    from jinja2 import nodes

    tree = environment.parse(text)
    for node in tree.find_all((nodes.Getattr, nodes.Const)):
        name = node.attr if isinstance(node, nodes.Getattr) else node.value
        if isinstance(name, str) and (found := _DUNDER.fullmatch(name) or _INTERNAL.search(name)):
            return f"reaches for {found[0]}"
    return ""


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **rest: Any) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=rest.get("separators"),
        sort_keys=bool(rest.get("sort_keys")),
    )


def _raise(message: object = "") -> None:
    raise Raised(str(message))


def _strftime(form: str) -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime(form)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _tell(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
