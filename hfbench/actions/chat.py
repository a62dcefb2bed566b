"""chat: a conversation rendered by a model's chat template, and how many tokens it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import HfbenchError, UsageError
from hfbench.line_width import cut, room
from hfbench.models.problem import counted
from hfbench.text import cells, clip, printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run
    from hfbench.tokens.conversation import Message

MARK, GOES_ON = "| ", ": "
"""Before a line of the text, and before what did not fit the line above it."""


@dataclass(frozen=True, kw_only=True)
class TemplateSource:
    """Which template it was and the file that holds it."""

    name: str
    source: str


@dataclass(frozen=True, kw_only=True)
class ChatResult:
    """The text of a conversation. `tokens` is None where it could not be cut into tokens; `note` says why.

    `content` is `parts` when the template wanted the content of messages in parts, as those of multimodal models do.
    `tools_used` is None where no tools were offered, and False where the text is the same without them.
    """

    model: str
    text: str
    tokens: int | None
    template: TemplateSource
    messages: int
    content: Literal["text", "parts"]
    note: str
    tools_used: bool | None = None

    @property
    def headline(self) -> str:
        """`45 tokens, 3 messages`."""
        told = counted(self.tokens, "token") if self.tokens is not None else counted(len(self.text), "character")
        return f"{told}, {counted(self.messages, 'message')}"

    def lines(self) -> list[str]:
        """Where it came from, and the text with a mark before each of its lines, another before what goes on below."""
        head = [
            cut(self.model),
            cut(f"template {self.template.name} from {self.template.source}"),
            self.headline + (", content in parts" if self.content == "parts" else ""),
        ]
        ignored = [cut("! the template ignores the tools: the text is the same without them")]
        notes = [*(ignored if self.tools_used is False else []), *([cut(f"! {self.note}")] if self.note else [])]
        return [*head, *notes, *_marked(self.text)]


@action("chat", result=ChatResult, inline=True, needs=("jinja2",), extra="tokens")
@dataclass(frozen=True, kw_only=True)
class Chat:
    """Render a conversation with a model's chat template and count its tokens."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    messages: Path | None = param("JSON file with the messages; else a sample", default=None, kind="path")
    system: str | None = param("What the system message says, instead of a file", default=None)
    user: str | None = param("What the user says, instead of a file", default=None)
    tools: Path | None = param("JSON file with the tools that are offered", default=None, kind="path")
    sample_tools: bool = param("Offer a sample tool", default=False)
    generation_prompt: bool = param("End with the words that make the model answer", default=True)
    template: str | None = param("Name of the template, where there are several", default=None)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> ChatResult:
        """Render in a process with limits; what a template does wrong is one sentence."""
        from contextlib import closing

        from hfbench.models.reference import resolve
        from hfbench.tokens import chat
        from hfbench.tokens.conversation import SAMPLE_TOOLS, read_tools
        from hfbench.tokens.templates_text import chosen, templates_of

        messages = self._messages()
        tools = read_tools(self.tools) if self.tools else list(SAMPLE_TOOLS) if self.sample_tools else []
        folder = resolve(self.model, cache_dir=self.cache_dir).folder
        template = chosen(templates_of(folder), self.template, tools=bool(tools), where=self.model)
        with closing(chat.Chat()) as renderer:
            names, prompt = chat.named_tokens(folder), self.generation_prompt
            rendered = renderer.render(template, messages, tools=tools, tokens=names, prompt=prompt)
            used = renderer.tells_of_tools(rendered, messages, tokens=names, prompt=prompt) if tools else None
        tokens, note = _count(folder, rendered.text)
        return ChatResult(
            model=self.model,
            text=rendered.text,
            tokens=tokens,
            template=TemplateSource(name=template.name, source=template.source),
            messages=len(messages),
            content=rendered.content,
            note=note,
            tools_used=used,
        )

    def _messages(self) -> list[Message]:
        from hfbench.tokens.conversation import of_texts, read_messages

        if self.messages is None:
            return of_texts(self.system, self.user)
        if self.system is not None or self.user is not None:
            raise UsageError("messages and a text were given", where="chat", remedy="give the file alone, or texts")
        return read_messages(self.messages)


def _count(folder: Path, text: str) -> tuple[int | None, str]:
    """The number of tokens, or why there is none: the text is worth having without it."""
    from hfbench.tokens.tokenizer import tokenized

    try:
        return len(tokenized(folder, text, special=False)[0]), ""
    except HfbenchError as error:
        return None, f"tokens not counted: {error}"


def _marked(text: str) -> Iterator[str]:
    """The text's lines, those longer than a line of the terminal cut behind a space where there is one."""
    for line in text.split("\n"):
        mark, left = MARK, printable(line)
        width = room() - len(mark)
        while cells(left) > width:
            part = clip(left, width, ellipsis="")
            part = part[: part.rfind(" ") + 1] or part
            yield mark + part
            mark, left = GOES_ON, left[len(part) :]
        yield mark + left
