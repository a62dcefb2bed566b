"""Chat templates as transformers compiles them: a sandboxed environment of jinja2 with the same extras.

Only processes with limits of their own import this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Fate = Literal["ok", "silent", "raises", "fails", "syntax", "unsafe", "memory"]
"""What becomes of a template that ends: `silent` leaves out the words that were looked for, `raises` refuses."""

LONGEST_TEXT = 4 * 2**20
"""Characters that rendering may give; real conversations are shorter."""

_DUNDER = re.compile(r"__\w+__")
_INTERNAL = re.compile(r"__(?:class|globals|mro|bases?|subclasses|init|builtins|import|getattribute|dict|code)__")
"""Also inside a longer text, such as one given to format."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """What rendering came to: the text of one that went well, else a sentence."""

    fate: Fate
    text: str = ""
    detail: str = ""


class Raised(Exception):
    """The template called raise_exception."""


class Immutable(Exception):
    """The template tried to change what it was given."""


class Templates:
    """Compiles and renders. ImportError when jinja2 is not installed."""

    def __init__(self) -> None:
        self._environment = _environment()

    def compile(self, text: str) -> tuple[Any, Rendering]:
        """The compiled template, or None and why there is none."""
        import jinja2

        try:
            reached = self._reaches(text)
            compiled = self._environment.from_string(text)
        except jinja2.TemplateSyntaxError as error:
            return None, Rendering("syntax", detail=f"line {error.lineno}: {error.message}")
        except MemoryError:
            return None, Rendering("memory")
        except Exception as error:  # whatever a hostile template makes of the compiler
            return None, Rendering("syntax", detail=f"{type(error).__name__}: {error}")
        return (None, Rendering("unsafe", detail=reached)) if reached else (compiled, Rendering("ok"))

    def _reaches(self, text: str) -> str:
        """The first name of Python's internals that a template spells out, empty when there is none."""
        from jinja2 import nodes

        tree = self._environment.parse(text)
        for node in tree.find_all((nodes.Getattr, nodes.Const)):
            name = node.attr if isinstance(node, nodes.Getattr) else node.value
            if isinstance(name, str) and (found := _DUNDER.fullmatch(name) or _INTERNAL.search(name)):
                return f"reaches for {found[0]}"
        return ""


def render(
    compiled: Any, messages: Sequence[Mapping[str, Any]], values: Mapping[str, Any], *, words: str = "", prompt: bool
) -> Rendering:
    """The text for these messages; `silent` when it lacks `words`. Nothing is raised for what the template does."""
    import jinja2
    from jinja2.exceptions import SecurityError

    given = {"tools": None, "documents": None, **values}
    try:
        parts, length = [], 0
        for part in compiled.generate(messages=json.loads(json.dumps(messages)), add_generation_prompt=prompt, **given):
            length += len(part)
            if length > LONGEST_TEXT:
                return Rendering("memory", detail=f"more than {LONGEST_TEXT:,} characters")
            parts.append(part)
        text = "".join(parts)
        return Rendering("ok" if words in text else "silent", text)
    except Raised as error:
        return Rendering("raises", detail=str(error))
    except SecurityError as error:
        return Rendering("unsafe", detail=str(error))
    except (MemoryError, OverflowError) as error:
        return Rendering("memory", detail=str(error))
    except jinja2.TemplateSyntaxError as error:
        return Rendering("syntax", detail=error.message or "")
    except Exception as error:  # anything may happen in a template
        return Rendering("fails", detail=f"{type(error).__name__}: {error}")


def in_parts(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same messages with their content in parts, as the templates of multimodal models want it."""
    return [
        {**each, "content": [{"type": "text", "text": each["content"]}]}
        if isinstance(each.get("content"), str)
        else {**each}
        for each in messages
    ]


def _environment() -> Any:
    import jinja2.ext
    from jinja2.exceptions import SecurityError
    from jinja2.nodes import CallBlock, Const
    from jinja2.sandbox import ImmutableSandboxedEnvironment, modifies_known_mutable

    class Generation(jinja2.ext.Extension):
        """Takes the `generation` tag, which marks the assistant's words, for its content."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return CallBlock(self.call_method("_content", [Const(None)]), [], [], body).set_lineno(line)

        def _content(self, _: object, caller: Any) -> Any:
            return caller()

    class Sandbox(ImmutableSandboxedEnvironment):
        """Says at once what a template reached for, where jinja2 gives it an empty text."""

        def unsafe_undefined(self, obj: Any, attribute: str) -> Any:
            if modifies_known_mutable(obj, attribute):
                raise Immutable(f"{attribute} would change a {type(obj).__name__}, which transformers forbids")
            raise SecurityError(f"reaches for {attribute}")

    environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _strftime
    return environment


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
