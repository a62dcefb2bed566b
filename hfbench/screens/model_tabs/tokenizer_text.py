"""Text typed into a model's tokenizer: its tokens as they stand in the text, and each with id and bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize

from hfbench.errors import HfbenchError
from hfbench.models.problem import counted
from hfbench.screens.latest_wins import LatestWins
from hfbench.screens.messages import Latest
from hfbench.screens.model_tabs.base import Detail, DetailTab
from hfbench.screens.model_tabs.compare_bar import CompareBar
from hfbench.screens.model_view import ModelView
from hfbench.screens.token_desk import Desk, TextAnswer, TextQuestion
from hfbench.text import printable
from hfbench.tokens.compare import Comparison
from hfbench.tokens.encoded import FILE, Encoded, Token
from hfbench.widgets.cells import clip
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.glyphs import Glyphs, glyphs_of
from hfbench.widgets.text_buffer import MOST_CHARACTERS
from hfbench.widgets.text_entry import TextEntry
from hfbench.widgets.token_flow import TokenFlow
from hfbench.widgets.token_table import NOTHING, TokenTable

SLOW = 0.3
"""Seconds after which an answer that is not there yet is said to be under way; most take milliseconds."""

HIGH = 30
"""Rows of the pane from which on the text itself gets more of them."""

ROWS = {False: 3, True: 8}
"""Rows of the text with its tokens, at most, in a pane that is high or is not."""


@dataclass
class Cut(Latest):
    """What became of a text."""

    answer: TextAnswer


@dataclass
class CuttingFailed(Latest):
    """The thread that asks met an error of its own."""

    error: HfbenchError


class TextPane(DetailTab):
    """Type a text, and see what the tokenizer makes of it."""

    title: ClassVar[str] = "Text"
    keys_to = TokenTable

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "type", "type text", show=False),
        Binding("w", "compare", "compare with"),
        Binding("s", "special", "special tokens"),
    ]

    DEFAULT_CSS = """
    TextPane {
        & > TextEntry { margin-bottom: 1; }
        & > #text-facts { height: auto; max-height: 5; margin-bottom: 1; }
        & > TokenFlow { margin-bottom: 1; }
        &.-detail > TokenFlow { display: none; }
        &.-detail.-high > TokenFlow { display: block; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.desk: Desk | None = None
        self.question = TextQuestion(text="")
        self.answer: TextAnswer | None = None
        self._failed: HfbenchError | None = None
        self._asked = False
        self._cutting: LatestWins[tuple[Desk, TextQuestion]] = LatestWins(
            self, lambda asked: Cut(asked[0].cut(asked[1])), CuttingFailed
        )

    @property
    def at_rest(self) -> bool:
        """True when what is shown answers what was typed last."""
        answered = self.answer is not None and self.answer.question == self.question
        return self.desk is None or answered or self._failed is not None

    @property
    def table(self) -> TokenTable:
        """The table of tokens."""
        return self.query_one(TokenTable)

    def compose(self) -> ComposeResult:
        """The entry, what it comes to, the tokens in the text and in a table, one of them in full."""
        yield TextEntry(hint="i types a text here", back="TokenTable", id="text-entry")
        yield CompareBar()
        yield FactsTable(id="text-facts")
        yield TokenFlow()
        yield TokenTable()
        yield Detail()

    def on_mount(self) -> None:
        """Follow the cursor."""
        self.watch(self.table, "cursor", self._follow, init=False)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._cutting.stop()

    def on_resize(self, event: Resize) -> None:
        """More rows for the text where there are many."""
        high = event.size.height >= HIGH
        self.set_class(high, "-high")
        flow = self.query_one(TokenFlow)
        flow.most = ROWS[high]
        flow.fit()

    def show(self, view: ModelView) -> None:
        """The tokenizer is loaded when somebody looks."""
        if not self._asked:
            self._ask()

    def use(self, desk: Desk | None) -> None:
        """Ask this desk from now on."""
        self.desk, self.answer, self._failed, self._asked = desk, None, None, False

    def facts(self) -> Sequence[Fact]:
        """The token under the cursor."""
        encoded = self.table.encoded
        return token_facts(encoded, self.table.cursor) if len(encoded) else ()

    def toggle_detail(self) -> None:
        """The details of a token take the room of the text."""
        super().toggle_detail()
        self.set_class(self.query_one(Detail).display, "-detail")

    def action_close_detail(self) -> None:
        """Close the details, and show the text again."""
        super().action_close_detail()
        self.remove_class("-detail")

    def copied(self) -> str:
        """The ids of all tokens, as a list of JSON or Python."""
        return str(list(self.table.encoded.ids)) if len(self.table.encoded) else ""

    def action_type(self) -> None:
        """Give the keys to the entry."""
        self.screen.set_focus(self.query_one(TextEntry))

    def action_compare(self) -> None:
        """Ask for the model to compare with."""
        self.query_one(CompareBar).open()

    def action_special(self) -> None:
        """Add the special tokens that stand around a text, or do not."""
        self._ask(special=not self.question.special)

    @on(TextEntry.Changed)
    def _typed(self) -> None:
        self._ask(text=self.query_one(TextEntry).text)

    @on(CompareBar.Closed)
    def _compare(self, message: CompareBar.Closed) -> None:
        self._ask(other=message.reference)

    @on(TokenTable.Chosen)
    def _choose(self) -> None:
        self.toggle_detail()

    @on(Cut)
    def _cut(self, message: Cut) -> None:
        if self.desk is None or not self.is_attached:
            return
        self.answer = message.answer
        encoded = message.answer.encoded or NOTHING
        table = self.table
        table.show(encoded)
        self.query_one(TokenFlow).show(encoded, table.cursor)
        self.follow_detail()
        self._show()

    @on(CuttingFailed)
    def _cutting_failed(self, message: CuttingFailed) -> None:
        self._failed = message.error
        self._show()

    def _ask(self, **changes: Any) -> None:
        self.question = replace(self.question, **changes)
        if self.desk is not None:
            self._asked = True
            self._cutting.ask((self.desk, self.question))
        if self.answer is None:
            self._show()
        else:
            self.set_timer(SLOW, self._show)

    def _show(self) -> None:
        if self.is_mounted:
            facts = list(self._told())
            self.query_one("#text-facts", FactsTable).show(facts)
            told = self.answer is not None and self.answer.error is None
            self.table.empty = "no tokens; i types a text" if told else ""

    def _told(self) -> Iterator[Fact]:
        glyphs, answer = glyphs_of(self.app), self.answer
        if self._failed is not None:
            yield Fact("tokenizer", str(self._failed), "error")
        elif answer is None:
            yield Fact("tokens", "loading the tokenizer ..." if self.desk else "the model is looked for", "muted")
        elif answer.error is not None:
            yield Fact("tokenizer", str(answer.error), "error")
        elif answer.encoded is not None:
            more = "" if answer.question.special else f" {glyphs.dot} without special tokens around it"
            yield Fact(
                "tokens", counts_text(answer.encoded, glyphs) + more + ("" if self.at_rest else "  (cutting ...)")
            )
            if answer.source != FILE:
                yield Fact("tokenizer", answer.source, "muted")
        if self.query_one(TextEntry).buffer.full:
            yield Fact("text", f"cut off after {MOST_CHARACTERS:,} characters", "warn")
        if answer is not None and answer.other_error is not None:
            error, other = answer.other_error, answer.question.other
            yield Fact("compared", f"{error}" if error.where.startswith(other) else f"{other}: {error}", "error")
        elif answer is not None and answer.comparison is not None:
            yield Fact("compared", comparison_text(answer.comparison, glyphs))

    def _follow(self) -> None:
        self.query_one(TokenFlow).move(self.table.cursor)
        self.follow_detail()


def counts_text(encoded: Encoded, glyphs: Glyphs) -> str:
    """`12 tokens · 45 bytes · 43 characters · 3.6 characters a token`."""
    parts = [
        counted(len(encoded), "token"),
        counted(len(encoded.raw), "byte"),
        counted(encoded.characters, "character"),
    ]
    if len(encoded) and encoded.characters:
        parts.append(f"{encoded.characters / len(encoded):.2f} characters a token")
    return f" {glyphs.dot} ".join(parts)


def comparison_text(comparison: Comparison, glyphs: Glyphs) -> str:
    """What the second tokenizer makes of the text, and where the two first part."""
    ratio = f", {comparison.ratio:.3f} times as many" if comparison.ratio is not None else ""
    head = f"{comparison.model}: {counted(comparison.count, 'token')}{ratio}"
    found = comparison.first_difference
    if found is None:
        return f"{head} {glyphs.dot} the same tokens"
    sides = f"{_side(found.a, glyphs)} against {_side(found.b, glyphs)}"
    if found.kind == "id":
        return f"{head} {glyphs.dot} cut alike, other ids from token {found.index:,} on: {sides}"
    return f"{head} {glyphs.dot} they part at byte {found.byte:,}, token {found.index:,}: {sides}"


def token_facts(encoded: Encoded, row: int) -> list[Fact]:
    """One token in full."""
    token = encoded.token(row)
    kind = "special" if token.special else "added" if token.added else "of the vocabulary"
    raw = encoded.bytes_of(row)
    text = raw.decode("utf-8", "surrogateescape")
    shown = f"bytes {token.begin:,} to {token.end:,}: {raw[:24].hex(' ')}{' ...' if len(raw) > 24 else ''}"
    return [
        Fact("token", f"{row:,}, id {token.id}, {kind}"),
        Fact("piece", token.piece),
        Fact("text", json.dumps(text, ensure_ascii=False) if raw else "nothing of the text"),
        Fact("place", shown if raw else f"byte {token.begin:,}"),
        Fact("code points", " ".join(f"U+{ord(each):04X}" for each in text[:16] if not 0xDC80 <= ord(each) <= 0xDCFF)),
    ]


def _side(token: Token | None, glyphs: Glyphs) -> str:
    if token is None:
        return "the end"
    return f"{token.id} '{clip(printable(token.text), 20, ellipsis=glyphs.ellipsis)}'"
