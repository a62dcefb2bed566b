"""The merges of a BPE tokenizer.json against its vocabulary. They may be half a million, so they are never all held."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.models.problem import quoted
from hfbench.models.vocabulary import MERGES

_NEXT = re.compile(r"\s*,\s*")
_SPACE = re.compile(r"\s*")


def merges_fault(raw: bytes, model: Mapping[str, Any]) -> str | None:
    """The first merge that the tokenizers library refuses, in a file's bytes whose model is the BPE of `model`."""
    vocab, prefix = model.get("vocab"), model.get("continuing_subword_prefix")
    start = MERGES.search(raw)
    if start is None or not isinstance(vocab, dict):
        return None
    skipped = len(prefix) if isinstance(prefix, str) else 0
    style: type | None = None
    for merge in _elements(raw[start.end() :].decode("utf-8", "replace")):
        if style not in (None, type(merge)):
            return f"the merge {quoted(merge)} is written in another way than those before it"
        style = type(merge)
        if isinstance(merge, str) and merge.startswith("#version"):
            continue
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            return f"the merge {quoted(merge)} is not of two parts"
        first, second = parts
        for token in (first, second, first + second[skipped:]):
            if token not in vocab:
                return f"the merge of {quoted(first)} and {quoted(second)} needs {quoted(token)}, not in the vocab"
    return None


def _elements(text: str) -> Iterator[Any]:
    """The elements of a JSON list, from behind its opening bracket on; a fault of the text ends them."""
    scan = json.JSONDecoder().raw_decode
    space = _SPACE.match(text)
    at = space.end() if space else 0
    while at < len(text) and text[at] != "]":
        try:
            value, at = scan(text, at)
        except (StopIteration, ValueError, RecursionError):
            return
        yield value
        comma = _NEXT.match(text, at)
        if comma is None:
            return
        at = comma.end()
