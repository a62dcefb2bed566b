"""Renders one chat template for one conversation at a time, in a process of its own, which its limits may end.

`python -m hfbench.tokens.chat_child` answers with the fate of a template and the text it gives.
"""

from __future__ import annotations

from typing import Any

from hfbench.errors import HfbenchError
from hfbench.tokens.sandbox import Rendering, Templates, in_parts, render
from hfbench.tokens.serve import LONGEST_DETAIL, Answer, serve

MEMORY = 256 * 2**20
"""Bytes of address space beside the interpreter's."""


def answer(request: dict[str, Any], payload: bytes) -> Answer:
    """Render; `content` tells whether the template had to be given its content in parts."""
    compiled, told = Templates().compile(payload.decode())
    messages, content = request["messages"], "text"
    if compiled is not None:
        told = _rendered(compiled, messages, request)
        if told.fate in ("fails", "silent"):
            again = _rendered(compiled, in_parts(messages), request)
            if again.fate == "ok":
                told, content = again, "parts"
    try:
        text = told.text.encode()
    except UnicodeEncodeError as error:
        raise HfbenchError(f"what it renders is not Unicode at character {error.start:,}") from None
    return {"fate": told.fate, "detail": told.detail[:LONGEST_DETAIL], "content": content}, text


def _rendered(compiled: Any, messages: Any, request: dict[str, Any]) -> Rendering:
    values = {**request["tokens"], "tools": request["tools"]}
    return render(compiled, messages, values, words=_words(request["messages"]), prompt=request["prompt"])


def _words(messages: Any) -> str:
    """What the last user says: a template that leaves it out may want its content in parts."""
    said = [each["content"] for each in messages if each.get("role") == "user" and isinstance(each.get("content"), str)]
    return said[-1].strip() if said else ""


def main() -> None:
    """Serve until stdin ends."""
    try:
        Templates()  # before memory is limited, so that the size of jinja2 counts as the interpreter's
    except ImportError:
        pass  # told by the first request
    serve(answer, memory=MEMORY)


if __name__ == "__main__":
    main()
