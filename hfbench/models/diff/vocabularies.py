"""Compares vocabularies and merges of tokenizers: counted as a whole, with the first few that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hfbench.models.diff.facts import KeyDiff
from hfbench.models.diff.keys import told_value
from hfbench.models.problem import counted, quoted

MOST_TOLD = 20
"""Tokens told of each kind of change."""

VOCABULARY_FILES = frozenset({"tokenizer.json", "vocab.json", "tekken.json", "vocab.txt", "merges.txt"})

Value = int | float | str | None | tuple[int, Any]


@dataclass(slots=True)
class Vocabulary:
    """What a file says of tokens; `rest` is all else it holds.

    `tokens` have ids, those of Unigram a score beside them. `merges` are pairs joined by a blank, in their order.
    """

    rest: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, Value] = field(default_factory=dict)
    merges: list[str] = field(default_factory=list)
    tokens_key: str = ""
    merges_key: str = ""


def vocabulary_of_text(name: str, text: str) -> Vocabulary:
    """Of vocab.txt, a token a line, or of merges.txt."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        del lines[-1]
    if name == "merges.txt":
        return Vocabulary(merges=[line for line in lines if not line.startswith("#version")], merges_key="merges")
    return Vocabulary(tokens={line.removesuffix("\r"): row for row, line in enumerate(lines)}, tokens_key="tokens")


def take_vocabulary(name: str, content: dict[str, Any]) -> Vocabulary:
    """Of a JSON file, whose object loses the lists that are taken: they are large and not held twice."""
    if name == "vocab.json":
        return Vocabulary(tokens=content, tokens_key="tokens")
    found = Vocabulary(rest=content)
    holder, prefix = (content.get("model"), "model.") if name == "tokenizer.json" else (content, "")
    if not isinstance(holder, dict):
        return found
    tokens = _tokens(holder.get("vocab"))
    if tokens is not None:
        del holder["vocab"]
        found.tokens, found.tokens_key = tokens, f"{prefix}vocab"
    merges = _merges(holder.get("merges"))
    if merges is not None:
        del holder["merges"]
        found.merges, found.merges_key = merges, f"{prefix}merges"
    return found


def diff_vocabularies(file: str, a: Vocabulary, b: Vocabulary) -> Iterator[KeyDiff]:
    """What sets the tokens and the merges of B apart from those of A."""
    yield from _diff_tokens(file, a.tokens_key or b.tokens_key, a.tokens, b.tokens)
    yield from _diff_merges(file, a.merges_key or b.merges_key, a.merges, b.merges)


def _diff_tokens(file: str, key: str, a: Mapping[str, Value], b: Mapping[str, Value]) -> Iterator[KeyDiff]:
    added = [token for token in b if token not in a]
    removed = [token for token in a if token not in b]
    moved = [token for token, value in a.items() if token in b and b[token] != value]
    told = [
        f"{len(found):,} {how}"
        for found, how in ((added, "added"), (removed, "removed"), (moved, "with another id or score"))
        if found
    ]
    if not told:
        return
    totals = counted(len(a), "token"), f"{counted(len(b), 'token')}: {', '.join(told)}"
    yield KeyDiff(file=file, key=key, change="changed", a=totals[0], b=totals[1])
    for token in removed[:MOST_TOLD]:
        yield KeyDiff(file=file, key=f"{key}[{token}]", change="removed", a=_shown(a[token]))
    for token in added[:MOST_TOLD]:
        yield KeyDiff(file=file, key=f"{key}[{token}]", change="added", b=_shown(b[token]))
    for token in moved[:MOST_TOLD]:
        yield KeyDiff(file=file, key=f"{key}[{token}]", change="changed", a=_shown(a[token]), b=_shown(b[token]))


def _diff_merges(file: str, key: str, a: list[str], b: list[str]) -> Iterator[KeyDiff]:
    if a == b:
        return
    in_a, in_b = set(a), set(b)
    added = ((row, merge) for row, merge in enumerate(b) if merge not in in_a)
    removed = ((row, merge) for row, merge in enumerate(a) if merge not in in_b)
    counts = [(len(in_b - in_a), "added"), (len(in_a - in_b), "removed")]
    told = [f"{count:,} {how}" for count, how in counts if count] or ["in another order"]
    first = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    here = [quoted(merges[first]) if first < len(merges) else "none" for merges in (a, b)]
    totals = counted(len(a), "merge"), f"{counted(len(b), 'merge')}: {', '.join(told)}"
    yield KeyDiff(file=file, key=key, change="changed", a=totals[0], b=totals[1])
    yield KeyDiff(file=file, key=f"{key}[{first}]", change="changed", a=here[0], b=here[1])  # the first that differs
    for row, merge in islice(removed, MOST_TOLD):
        yield KeyDiff(file=file, key=f"{key}[{merge}]", change="removed", a=row)
    for row, merge in islice(added, MOST_TOLD):
        yield KeyDiff(file=file, key=f"{key}[{merge}]", change="added", b=row)


def _tokens(vocab: object) -> dict[str, Value] | None:
    """Tokens with their ids, of an object, of Unigram's list of pairs, or of tekken's list of objects."""
    if isinstance(vocab, dict):
        return vocab
    if not isinstance(vocab, list):
        return None
    if all(isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in vocab):
        return {token: (row, score) for row, (token, score) in enumerate(vocab)}
    if all(isinstance(each, dict) and isinstance(each.get("token_bytes"), str) for each in vocab):
        return {each["token_bytes"]: each.get("rank") for each in vocab}
    return None


def _merges(merges: object) -> list[str] | None:
    """Merges as older and newer files write them: `"a b"`, `["a", "b"]`."""
    if not isinstance(merges, list):
        return None
    joined = [each if isinstance(each, str) else _joined(each) for each in merges]
    return None if None in joined else joined  # type: ignore[return-value]


def _joined(pair: object) -> str | None:
    """Both parts with a blank between them, or with a NUL where a blank would not tell them apart."""
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        return None
    return ("\0" if " " in pair[0] or " " in pair[1] else " ").join(pair)


def _shown(value: Value) -> Any:
    return f"{value[0]}, score {value[1]}" if isinstance(value, tuple) else told_value(value)
