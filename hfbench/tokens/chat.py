"""Conversations to text by a model's chat template, rendered in a process with limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hfbench.errors import HfbenchError, MissingError
from hfbench.models.json_text import JsonError, read_object
from hfbench.models.problem import ModelError, quoted
from hfbench.models.tokenizer import read_tokenizer
from hfbench.tokens.chat_child import MEMORY
from hfbench.tokens.child import Child, ChildEnded
from hfbench.tokens.conversation import Message
from hfbench.tokens.templates_text import LONGEST, Template
from hfbench.tokens.tokenizer import ended_while, missing_extra

SECONDS = 1.0
"""CPU time for one rendering: real ones take milliseconds."""

WALL_SECONDS = 3.5
"""On the wall, the start of the process included, however busy the machine is."""

_SAID = {
    "raises": "refuses this conversation",
    "fails": "fails on this conversation",
    "syntax": "does not compile",
    "unsafe": "is not safe and was not rendered",
    "memory": "takes more memory than allowed",
}

_REMEDIES = {
    "raises": "change the messages",
    "fails": "change the messages, or mend the template",
    "syntax": "mend the template",
    "unsafe": "do not load this model",
    "memory": "do not use the template",
}


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """The text of a conversation. `content` is `parts` when the template wants its content in parts."""

    text: str
    template: Template
    content: Literal["text", "parts"]


class Chat:
    """Renders templates. Every method raises an HfbenchError of one sentence for what a template does."""

    def __init__(self) -> None:
        self._child = Child("hfbench.tokens.chat_child")

    def render(
        self,
        template: Template,
        messages: Sequence[Message],
        *,
        tools: Sequence[Message] = (),
        tokens: Mapping[str, str],
        prompt: bool = True,
    ) -> Rendered:
        """The text for these messages, with the generation prompt at its end when `prompt` is true."""
        request = {"messages": list(messages), "tools": list(tools) or None, "tokens": dict(tokens), "prompt": prompt}
        name = f"the template {quoted(template.name)}"
        if template.too_long:
            found = f"{name} has more than {LONGEST:,} characters and is not tried"
            raise ModelError("template_too_long", found, where=template.source, remedy="do not use the template")
        try:
            told, text = self._child.ask(
                request, template.text.encode("utf-8", "replace"), seconds=SECONDS, wall=WALL_SECONDS
            )
        except ChildEnded as ended:
            doing, remedy = f"rendering {name}", _REMEDIES["memory"]
            if ended.ending == "timeout" and ended.signal != "SIGPROF":
                found = f"{doing} was not done after {WALL_SECONDS:g} s"
                raise ModelError("tokenizer_timeout", found, where=template.source, remedy=remedy) from None
            raise ended_while(ended, doing, SECONDS, where=template.source, remedy=remedy, memory=MEMORY) from None
        except MissingError as error:
            raise missing_extra(error.found) from None
        if told["fate"] not in ("ok", "silent"):
            detail = f": {told['detail']}" if told["detail"] else ""
            found = f"{name} {_SAID[told['fate']]}{detail}"
            raise HfbenchError(found, where=template.source, remedy=_REMEDIES[told["fate"]])
        return Rendered(text=text.decode(), template=template, content=told["content"])

    def tells_of_tools(
        self, rendered: Rendered, messages: Sequence[Message], *, tokens: Mapping[str, str], prompt: bool = True
    ) -> bool:
        """Whether a text made with tools is another one without them; a template that then fails needs them."""
        try:
            bare = self.render(rendered.template, messages, tokens=tokens, prompt=prompt)
        except HfbenchError:
            return True
        return bare.text != rendered.text

    def close(self) -> None:
        """End its process."""
        self._child.close()


def named_tokens(folder: Path) -> dict[str, str]:
    """The special tokens a template may name, such as `bos_token`, by the name transformers gives them."""
    found = {role: token.content for role, token in read_tokenizer(folder).special_tokens.items()}
    try:
        values: dict[str, Any] = read_object(folder / "tokenizer_config.json", folder).value
    except JsonError:
        return found
    more = {key: value for key, value in values.items() if key.endswith("_token") and isinstance(value, str)}
    return {**more, **found}
