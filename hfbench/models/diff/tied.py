"""Explains an output head that one side stores and the other ties to its embedding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hfbench.models.columns import TensorInfo
from hfbench.models.diff.facts import Tensor
from hfbench.models.diff.files import Side
from hfbench.models.diff.opened import Subject
from hfbench.models.diff.values import same_bytes
from hfbench.models.problem import ModelError, Problem, quoted
from hfbench.models.values.reading import Weights

HEADS = ("lm_head.weight", "embed_out.weight")
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight")


Alone = tuple[Side, Subject, Iterable[Tensor], Subject]
"""A side, the tensors it has alone, and the other side."""


def tied_notes(sides: Iterable[Alone], *, values: bool) -> Iterator[Problem]:
    """A note for each head that one side alone has while the other's configuration ties it.

    With `values`, the note tells whether
    the stored head repeats the embedding beside it.
    """
    for side, subject, alone, other in sides:
        if not (other.config and other.config.tied):
            continue
        for head in (each.name for each in alone if each.name.endswith(HEADS)):
            found = f"{quoted(head)} is stored in {side} alone; the other side ties it to the embedding"
            if embedding := _embedding(subject):
                found += _compared(subject, head, embedding) if values else ", --values tells whether it is the same"
            yield Problem(severity="info", where="", found=found, code="tied_head")


def _embedding(subject: Subject) -> TensorInfo | None:
    columns = subject.checkpoint.columns
    rows = [row for row, name in enumerate(columns.names) if name.endswith(EMBEDDINGS)]
    return columns[rows[0]] if len(rows) == 1 else None


def _compared(subject: Subject, head: str, embedding: TensorInfo) -> str:
    columns = subject.checkpoint.columns
    stored = columns[columns.names.index(head)]
    if (stored.dtype, stored.shape) != (embedding.dtype, embedding.shape):
        return ", which it does not repeat"
    try:
        with Weights(subject.checkpoint) as weights:
            same = same_bytes(weights, weights, stored, embedding)
    except ModelError:
        return ""  # the file gave out: one of the problems
    return ", whose bytes it repeats" if same else ", which it does not repeat"
