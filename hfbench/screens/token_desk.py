"""What a screen asks about the tokens of one model: texts cut and compared, conversations rendered."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.errors import HfbenchError
from hfbench.models.reference import resolve
from hfbench.tokens.compare import Comparison, compare
from hfbench.tokens.conversation import SAMPLE_TOOLS, Message
from hfbench.tokens.encoded import Encoded

if TYPE_CHECKING:
    from hfbench.tokens.chat import Rendered
    from hfbench.tokens.templates_text import Template
    from hfbench.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TextQuestion:
    """A text to cut, and a second model to compare with; empty for none."""

    text: str
    special: bool = True
    other: str = ""


@dataclass(frozen=True, kw_only=True)
class TextAnswer:
    """What became of a question. An error of the second tokenizer takes nothing from the first."""

    question: TextQuestion
    encoded: Encoded | None = None
    source: str = ""
    error: HfbenchError | None = None
    comparison: Comparison | None = None
    other_error: HfbenchError | None = None


@dataclass(frozen=True, kw_only=True)
class ChatQuestion:
    """A conversation to render; without a template's name the one that transformers would take."""

    messages: tuple[Message, ...]
    template: str | None = None
    tools: bool = False
    prompt: bool = True


@dataclass(frozen=True, kw_only=True)
class ChatAnswer:
    """What became of a conversation: its text and, where the tokenizer works, the tokens of it."""

    question: ChatQuestion
    templates: tuple[Template, ...] = ()
    chosen: Template | None = None
    rendered: Rendered | None = None
    tools_used: bool | None = None
    """False where the text is the same without the tools, None where none were offered."""
    error: HfbenchError | None = None
    encoded: Encoded | None = None
    tokens_error: HfbenchError | None = None


class Desk:
    """Answers for one folder, from whichever thread asks; its processes live until `close`."""

    def __init__(self, folder: Path, cache_dir: Path | None = None) -> None:
        from hfbench.tokens.chat import Chat
        from hfbench.tokens.tokenizer import Tokenizer

        self._folder, self._cache_dir = folder, cache_dir
        self._tokenizer, self._chat = Tokenizer(folder), Chat()
        self._other: tuple[str, Tokenizer] | None = None
        self._cutting = threading.Lock()

    def cut(self, question: TextQuestion) -> TextAnswer:
        """The tokens of a text, compared if asked for."""
        try:
            encoded = self._encode(question.text, question.special)
        except HfbenchError as error:
            return TextAnswer(question=question, error=error)
        comparison, other_error = None, None
        if question.other:
            try:
                comparison = self._compared(encoded, question)
            except HfbenchError as error:
                other_error = error
        return TextAnswer(
            question=question,
            encoded=encoded,
            source=self._tokenizer.source,
            comparison=comparison,
            other_error=other_error,
        )

    def render(self, question: ChatQuestion) -> ChatAnswer:
        """The text of a conversation and its tokens."""
        from hfbench.tokens.chat import named_tokens
        from hfbench.tokens.templates_text import chosen, templates_of

        templates = templates_of(self._folder)
        tools: Sequence[Message] = SAMPLE_TOOLS if question.tools else ()
        template = None
        try:
            template = chosen(templates, question.template, tools=question.tools)
            names, prompt = named_tokens(self._folder), question.prompt
            rendered = self._chat.render(template, question.messages, tools=tools, tokens=names, prompt=prompt)
            used = None
            if tools:
                used = self._chat.tells_of_tools(rendered, question.messages, tokens=names, prompt=prompt)
        except HfbenchError as error:
            return ChatAnswer(question=question, templates=templates, chosen=template, error=error)
        answer = ChatAnswer(question=question, templates=templates, chosen=template, rendered=rendered, tools_used=used)
        try:
            return replace(answer, encoded=self._encode(rendered.text, special=False))
        except HfbenchError as error:
            return replace(answer, tokens_error=error)

    def close(self) -> None:
        """End the processes; what is under way ends with an error."""
        self._tokenizer.close()
        self._chat.close()
        if self._other:
            self._other[1].close()

    def _encode(self, text: str, special: bool) -> Encoded:
        with self._cutting:
            return self._tokenizer.encode(text, special=special)

    def _compared(self, encoded: Encoded, question: TextQuestion) -> Comparison:
        from hfbench.tokens.tokenizer import Tokenizer

        if self._other is None or self._other[0] != question.other:
            if self._other is not None:
                self._other[1].close()
                self._other = None
            folder = resolve(question.other, cache_dir=self._cache_dir).folder
            self._other = (question.other, Tokenizer(folder))
        other = self._other[1]
        second = other.encode(question.text, special=question.special)
        return compare(encoded, second, model=question.other, source=other.source)
