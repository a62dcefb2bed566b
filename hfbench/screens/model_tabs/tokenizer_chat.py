"""A conversation rendered by a model's chat template while it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hfbench.errors import HfbenchError
from hfbench.models.problem import counted
from hfbench.screens.latest_wins import LatestWins
from hfbench.screens.messages import Latest
from hfbench.screens.model_tabs.base import ModelTab
from hfbench.screens.model_tabs.tokenizer_text import SLOW
from hfbench.screens.model_view import ModelView
from hfbench.screens.token_desk import ChatAnswer, ChatQuestion, Desk
from hfbench.tokens.conversation import ROLES, SAMPLE_MESSAGES
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.message_table import MessageTable, Written
from hfbench.widgets.span_view import SpanView
from hfbench.widgets.text_entry import TextEntry
from hfbench.widgets.token_lines import marked_lines, marks_of, special_segments

SHOWN = 2**16
"""Characters painted of a rendered conversation; `y` copies all."""

SAMPLE = tuple(Written(each["role"], each["content"]) for each in SAMPLE_MESSAGES)


@dataclass
class Rendered(Latest):
    """What became of a conversation."""

    answer: ChatAnswer


@dataclass
class RenderingFailed(Latest):
    """The thread that asks met an error of its own."""

    error: HfbenchError


class Messages(MessageTable):
    """The messages of the pane."""

    def choose(self, row: int) -> None:
        """Edit the message at once: the next key is already on its way."""
        pane = self.parent
        assert isinstance(pane, ChatPane), "the messages live in a pane"
        pane.edit()


class ChatPane(ModelTab):
    """Write a conversation, and see the text that the model is given."""

    title: ClassVar[str] = "Chat"
    keys_to = MessageTable

    help = Help(
        "Chat",
        "Above the messages, below what the template makes of them; special tokens stand out, each end of a line is "
        "marked. `enter` edits a message, `space` changes its role, `n` adds one; a message without text is left out.\n"
        "`m` goes from the sample to your own messages and back, `g` adds what makes the model answer or does not, "
        "`x` offers a sample tool or does not, `p` takes the next template. `tab` goes to the text, to scroll it.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "role", "role"),
        Binding("n", "add", "new message"),
        Binding("g", "prompt", "generation prompt"),
        Binding("x", "tools", "tools"),
        Binding("m", "sample", "sample or own"),
        Binding("p", "template", "next template"),
    ]

    DEFAULT_CSS = """
    ChatPane {
        & > #chat-facts { height: auto; max-height: 5; margin: 1 0; }
        & > MessageTable { height: auto; max-height: 6; }
        & > TextEntry { display: none; margin-top: 1; }
        & > #chat-told { height: auto; max-height: 4; margin: 1 0; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.desk: Desk | None = None
        self.own: list[Written] = []
        self.question = ChatQuestion(messages=_sent(SAMPLE))
        self.answer: ChatAnswer | None = None
        self._failed: HfbenchError | None = None
        self._asked = self._owns = False
        self._rendering: LatestWins[tuple[Desk, ChatQuestion]] = LatestWins(
            self, lambda asked: Rendered(asked[0].render(asked[1])), RenderingFailed
        )

    @property
    def at_rest(self) -> bool:
        """True when what is shown is the conversation as it stands."""
        answered = self.answer is not None and self.answer.question == self.question
        return self.desk is None or answered or self._failed is not None

    @property
    def messages(self) -> Sequence[Written]:
        """The sample, or the user's own."""
        return self.own if self._owns else SAMPLE

    @property
    def table(self) -> MessageTable:
        """The messages."""
        return self.query_one(MessageTable)

    def compose(self) -> ComposeResult:
        """Which template, the messages, the entry for one of them, and the text."""
        yield FactsTable(id="chat-facts")
        yield Messages()
        yield TextEntry(back="MessageTable", hint="what is said", id="message-entry")
        yield FactsTable(id="chat-told")
        view = SpanView()
        view.help = Help("Rendered text", "What the model is given, as the template makes it. `y` copies it.")
        yield view

    def on_mount(self) -> None:
        """Show the sample."""
        self.table.show(self.messages)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._rendering.stop()

    def show(self, view: ModelView) -> None:
        """The template is rendered when somebody looks."""
        if not self._asked:
            self._ask()

    def use(self, desk: Desk | None) -> None:
        """Ask this desk from now on."""
        self.desk, self.answer, self._failed, self._asked = desk, None, None, False

    def copied(self) -> str:
        """The rendered text."""
        return self.answer.rendered.text if self.answer and self.answer.rendered else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is a next template where there are two."""
        return action != "template" or len(self._names) > 1

    # -- keys -----------------------------------------------------------------

    def action_role(self) -> None:
        """The next role for the message under the cursor."""
        if not self._owns:
            self.action_sample()
        row, message = self.table.cursor, self.own[self.table.cursor]
        place = ROLES.index(message.role) + 1 if message.role in ROLES else 0
        self._write(row, replace(message, role=ROLES[place % len(ROLES)]))

    def action_add(self) -> None:
        """A message behind the one under the cursor, and the keys to its text."""
        self._make_own()
        self.table.show(self.own)
        row = self.table.cursor + 1
        role = "assistant" if self.own[row - 1].role == "user" else "user"
        self.own.insert(row, Written(role, ""))
        self.table.show(self.own)
        self.table.cursor = row
        self.edit()

    def action_prompt(self) -> None:
        """With the generation prompt, or without."""
        self._ask(prompt=not self.question.prompt)

    def action_tools(self) -> None:
        """With the sample tool, or without."""
        self._ask(tools=not self.question.tools)

    def action_sample(self) -> None:
        """The sample, or the user's own messages."""
        if self._owns:
            self._owns = False
        else:
            self._make_own()
        self.query_one(TextEntry).display = False
        self._changed()

    def action_template(self) -> None:
        """The next template by name."""
        now = self.answer.chosen.name if self.answer and self.answer.chosen else ""
        names = self._names
        self._ask(template=names[(names.index(now) + 1) % len(names)] if now in names else names[0])

    def edit(self) -> None:
        """Give the keys to the text of the message under the cursor."""
        if not self._owns:
            self.action_sample()  # the sample stays what it is
        entry = self.query_one(TextEntry)
        entry.display = True
        entry.show(self.messages[self.table.cursor].text)
        self.screen.set_focus(entry)

    @on(TextEntry.Changed)
    def _typed(self) -> None:
        row = self.table.cursor
        self._write(row, replace(self.own[row], text=self.query_one(TextEntry).text))

    @on(TextEntry.Left)
    def _left(self) -> None:
        self.query_one(TextEntry).display = False

    # -- asking and showing ---------------------------------------------------

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(each.name for each in self.answer.templates)) if self.answer else []

    def _make_own(self) -> None:
        """The user's own messages, which begin as a copy of the sample."""
        self._owns, self.own = True, self.own or list(SAMPLE)

    def _write(self, row: int, message: Written) -> None:
        self.own[row] = message
        self._changed()

    def _changed(self) -> None:
        self.table.show(self.messages)
        self._ask(messages=_sent(self.messages))

    def _ask(self, **changes: Any) -> None:
        self.question = replace(self.question, **changes)
        if self.desk is not None:
            self._asked = True
            self._rendering.ask((self.desk, self.question))
        if self.answer is None:
            self._show()
        elif self.is_mounted:
            self._show_settings()
            self.set_timer(SLOW, self._show)

    @on(Rendered)
    def _rendered(self, message: Rendered) -> None:
        if self.desk is not None and self.is_attached:
            self.answer = message.answer
            self._show()
            self._paint()

    @on(RenderingFailed)
    def _rendering_failed(self, message: RenderingFailed) -> None:
        self._failed = message.error
        self._show()

    def _show_settings(self) -> None:
        self.query_one("#chat-facts", FactsTable).show(list(self._settings()))

    def _show(self) -> None:
        if self.is_mounted:
            self._show_settings()
            self.query_one("#chat-told", FactsTable).show(list(self._told()))

    def _settings(self) -> Iterator[Fact]:
        glyphs, question = glyphs_of(self.app), self.question
        template = self.answer.chosen if self.answer else None
        if template is not None:
            more = f" of {len(self._names)}" if len(self._names) > 1 else ""
            yield Fact("template", f"{template.name}{more}, from {template.source}")
        ignored = self.answer is not None and self.answer.question == question and self.answer.tools_used is False
        told = (
            "your own messages" if self._owns else "sample messages",
            "generation prompt" if question.prompt else "no generation prompt",
            f"a sample tool{' (ignored)' if ignored else ''}" if question.tools else "no tools",
        )
        yield Fact("with", f" {glyphs.dot} ".join(told))

    def _told(self) -> Iterator[Fact]:
        answer = self.answer
        if self._failed is not None:
            yield Fact("template", str(self._failed), "error")
        elif answer is None:
            yield Fact("text", "the template is looked for", "muted")
        elif answer.error is not None:
            yield Fact("template", str(answer.error), "error")
        elif answer.rendered is not None:
            text = answer.rendered.text
            count = f"{counted(len(answer.encoded), 'token')}, " if answer.encoded else ""
            parts = ", content given in parts" if answer.rendered.content == "parts" else ""
            waits = "" if self.at_rest else "  (rendering ...)"
            yield Fact("text", f"{count}{counted(len(text), 'character')}{parts}{waits}")
            if len(text) > SHOWN:
                yield Fact("", f"the first {SHOWN:,} characters are shown; y copies all", "muted")
            if answer.tokens_error is not None:
                yield Fact("tokens", f"not counted: {answer.tokens_error}", "warn")

    def _paint(self) -> None:
        answer, marks = self.answer, marks_of(glyphs_of(self.app))
        assert answer
        segments = special_segments(answer.rendered.text[:SHOWN], answer.encoded) if answer.rendered else []

        def lay_out(width: int) -> list[list[Span]]:
            return marked_lines(segments, width, marks) if segments else []

        self.query_one(SpanView).show(lay_out)


def _sent(messages: Sequence[Written]) -> tuple[dict[str, str], ...]:
    """The messages that say something."""
    return tuple({"role": each.role, "content": each.text} for each in messages if each.text)
