"""tokenize: a text cut into tokens by a model's tokenizer, and by a second one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import HfbenchError, UsageError, error_from_parts
from hfbench.line_width import cut, cut_end, paragraph, room
from hfbench.models.problem import counted
from hfbench.text import clip, printable
from hfbench.tokens.compare import Comparison
from hfbench.tokens.encoded import Token

if TYPE_CHECKING:
    from hfbench.jobs.run import Run
    from hfbench.models.reference import Location
    from hfbench.tokens.encoded import Encoded

SHOWN = 40
"""Tokens in the table for people; `--json` lists all."""


@dataclass(frozen=True, kw_only=True)
class TokenizeResult:
    """The tokens of a text. `source` names the files the tokenizer was made from; `begin` and `end` count bytes."""

    model: str
    source: str
    tokens: tuple[Token, ...]
    count: int
    bytes: int
    characters: int
    compare: Comparison | None

    @property
    def headline(self) -> str:
        """`12 tokens, 45 bytes`."""
        return f"{counted(self.count, 'token')}, {counted(self.bytes, 'byte')}"

    def lines(self) -> list[str]:
        """Counts, a line a token and the comparison, as wide as the terminal."""
        head = [
            cut(self.model),
            cut_end(f"{self.headline}, {counted(self.characters, 'character')}  ({self.source})"),
        ]
        rows = list(_rows(self.tokens[:SHOWN]))
        left = self.count - SHOWN
        more = [f"and {left:,} more (--json lists all)"] if left > 0 else []
        return [*head, *rows, *more, *(compare_lines(self.compare, self.count) if self.compare else ())]


@action("tokenize", result=TokenizeResult, inline=True, needs=("tokenizers",), extra="tokens")
@dataclass(frozen=True, kw_only=True)
class Tokenize:
    """Cut a text into tokens as a model's tokenizer does, and compare with another tokenizer."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    text: str = param("Text to cut", default="")
    file: Path | None = param("UTF-8 file with the text, instead of a text", default=None, kind="path")
    compare: str | None = param("Model whose tokenizer is to be compared", default=None, kind="model")
    special: bool = param("Add the special tokens that stand around every text", default=True)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> TokenizeResult:
        """Cut the text in a process with limits; one sentence says what is wrong with a tokenizer or the text."""
        from hfbench.models.reference import resolve
        from hfbench.tokens.compare import compare

        text = self._text()
        location = resolve(self.model, cache_dir=self.cache_dir)
        other = resolve(self.compare, cache_dir=self.cache_dir) if self.compare else None
        found, source = _cut(location, text, self.special)
        comparison = None
        if other:
            second, second_source = _cut(other, text, self.special)
            comparison = compare(found, second, model=other.given, source=second_source)
        return TokenizeResult(
            model=self.model,
            source=source,
            tokens=tuple(found),
            count=len(found),
            bytes=len(found.raw),
            characters=found.characters,
            compare=comparison,
        )

    def _text(self) -> str:
        from hfbench.tokens.conversation import read_text
        from hfbench.tokens.tokenizer import MOST_TEXT

        if self.file is not None and self.text:
            raise UsageError("a text and a file were given", where="tokenize", remedy="give one of them")
        if self.file is None and not self.text:
            raise UsageError("there is no text", where="tokenize", remedy="give --text or --file")
        return read_text(self.file, MOST_TEXT) if self.file else self.text


def _cut(location: Location, text: str, special: bool) -> tuple[Encoded, str]:
    """The tokens, and the files that made them; an error names the model, of which there may be two."""
    from hfbench.tokens.tokenizer import tokenized

    try:
        return tokenized(location.folder, text, special=special)
    except HfbenchError as error:
        where = "/".join(filter(None, [location.given.rstrip("/"), error.where]))
        raise error_from_parts({**error.parts(), "where": where}) from None


def compare_lines(comparison: Comparison, count: int) -> Iterator[str]:
    """What the second tokenizer makes of it, in sentences."""
    ratio = f", {comparison.ratio:.3f} times as many" if comparison.ratio is not None else ""
    yield ""
    yield cut(f"compared with {comparison.model}")
    yield cut_end(f"{counted(comparison.count, 'token')} against {count:,}{ratio}  ({comparison.source})")
    yield from paragraph(difference_text(comparison), most=4)


def difference_text(comparison: Comparison) -> str:
    """Where the two first part, in a sentence."""
    found = comparison.first_difference
    if found is None:
        return "the same tokens"
    left, right = (_quoted(each) for each in (found.a, found.b))
    if found.kind == "id":
        return f"cut alike, other ids from token {found.index:,} on: {left} against {right}"
    return f"they part at byte {found.byte:,}, token {found.index:,}: {left} against {right}"


def _quoted(token: Token | None) -> str:
    return "the end" if token is None else f"{token.id} '{clip(printable(token.text), 24, ellipsis='...')}'"


def _rows(tokens: tuple[Token, ...]) -> Iterator[str]:
    ids = max((len(str(token.id)) for token in tokens), default=2)
    ends = max((len(str(token.end)) for token in tokens), default=1)
    for row, token in enumerate(tokens):
        kind = "special" if token.special else "added" if token.added else ""
        text = clip(f"'{printable(token.text)}'", room(30, shares=2), ellipsis="...")
        piece = clip(printable(token.piece), room(30, shares=2), ellipsis="...")
        place = f"{row:>3}  {token.id:>{ids}}  {token.begin:>{ends}}-{token.end:<{ends}}"
        yield f"{place}  {kind:<7}  {text}  {piece}"[: room()]
