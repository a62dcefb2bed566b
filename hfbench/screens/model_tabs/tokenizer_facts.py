"""What the tokenizer files say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult

from hfbench.models.facts import TokenizerFacts
from hfbench.screens.model_tabs.base import RecordTab
from hfbench.screens.model_view import SIGNS, ModelView
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

MOST_PROBLEMS = 3
MOST_TEMPLATES = 4


class FactsPane(RecordTab):
    """Class, vocabulary and templates, and the tokens that have a role."""

    title: ClassVar[str] = "Facts"
    columns = (
        Column("role", "Role"),
        Column("id", "Id", align="right"),
        Column("token", "Token", flexible=True, min=16, max=200),
    )
    empty = "no special tokens are named"

    DEFAULT_CSS = "FactsPane > FactsTable#tokenizer-facts { margin: 1 0; max-height: 12; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tokens: dict[str, str] = {}

    def above(self) -> ComposeResult:
        """The facts."""
        yield FactsTable(id="tokenizer-facts")

    def show(self, view: ModelView) -> None:
        """The facts come with the summary, when all is read."""
        known = view.summary.tokenizer if view.summary else None
        waits = [Fact("tokenizer", "is read after the weights", "muted")] if view.reading else []
        self.query_one("#tokenizer-facts", FactsTable).show(list(tokenizer_facts(known)) if known else waits)
        super().show(view)

    def records(self, view: ModelView) -> Sequence[Record]:
        """The special tokens."""
        tokens = view.summary.tokenizer.special_tokens if view.summary else {}
        self._tokens = {role: token.content for role, token in tokens.items()}
        return [
            Record(
                role,
                {"role": role, "id": "" if token.id is None else f"{token.id:,}", "token": token.content},
                order={"id": token.id},
            )
            for role, token in tokens.items()
        ]

    def facts(self) -> Sequence[Fact]:
        """The token as it is spelled, its characters one by one when they cannot be seen."""
        role = self.current or ""
        token = self._tokens.get(role, "")
        return [Fact(role, token), Fact("code points", " ".join(f"U+{ord(each):04X}" for each in token[:32]))]

    def copied(self) -> str:
        """The token itself."""
        return self._tokens.get(self.current or "", "")


def tokenizer_facts(facts: TokenizerFacts) -> Iterator[Fact]:
    """What the files say; faults first, they explain what is missing."""
    for problem in facts.problems[:MOST_PROBLEMS]:
        yield Fact(problem.where, problem.found, SIGNS[problem.severity])
    if not facts.files:
        yield Fact("tokenizer", "no tokenizer files in this folder", "muted")
        return
    yield Fact("class", facts.tokenizer_class or "not named")
    if facts.model:
        yield Fact("algorithm", facts.model)
    if facts.vocab_size is not None:
        highest = f", highest id {facts.highest_id:,}" if facts.highest_id is not None else ""
        yield Fact("vocabulary", f"{facts.vocab_size:,} tokens, {facts.added_tokens:,} of them added{highest}")
    longest = f"{facts.model_max_length:,} tokens" if facts.model_max_length is not None else "no limit stated"
    yield Fact("longest input", longest)
    for number, template in enumerate(facts.chat_templates[:MOST_TEMPLATES]):
        label = "" if number else "chat template"
        yield Fact(label, f"{template.name}: {template.characters:,} characters in {template.source}")
    if not facts.chat_templates:
        yield Fact("chat template", "none")
    yield Fact("files", ", ".join(facts.files))
