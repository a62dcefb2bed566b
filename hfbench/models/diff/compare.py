"""Compares two models: tensors by name, then values when asked, then the files beside the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hfbench.errors import UsageError
from hfbench.models.columns import TensorColumns
from hfbench.models.diff.facts import TENSOR_KINDS, VALUE_KINDS, ModelDiff, Tensor
from hfbench.models.diff.files import CONFIG, GENERATION, TOKENIZER, FolderPair
from hfbench.models.diff.measured import Done, Measured, measure_values
from hfbench.models.diff.opened import Subject, open_side
from hfbench.models.diff.rename import bare_name
from hfbench.models.diff.rules import Rule, parse_rules, rewrite
from hfbench.models.diff.tensors import Pairing, dtype_changes, pair_tensors, shape_changes, tensor
from hfbench.models.diff.tied import Alone, tied_notes
from hfbench.models.problem import Problem, listed


def diff_models(
    a: str,
    b: str,
    *,
    values: bool = False,
    include: Sequence[str] = (),
    rename: Sequence[str] = (),
    rtol: float | None = None,
    atol: float | None = None,
    cache_dir: Path | None = None,
    done: Done = lambda done, total: None,
) -> ModelDiff:
    """What sets B apart from A; `done` is told bytes of values compared and their total.

    UsageError when `include` matches no tensor or a rule is wrong or changes nothing, NotFound when a side is not
    there. Faults of the files are problems.
    """
    rules = parse_rules(rename)
    one, other = open_side("A", a, cache_dir), open_side("B", b, cache_dir)
    columns = one.checkpoint.columns, other.checkpoint.columns
    pairing = pair_tensors(*columns, include, rules)
    if include and not (pairing.pairs or pairing.added or pairing.removed):
        raise UsageError(f"no tensor of either model matches {listed(include)}", remedy="write names with * and ?")
    measured = Measured(pairing, (), (), ())
    if values:
        measured = measure_values(one, other, pairing, rtol=rtol, atol=atol, done=done)
        pairing = measured.pairing
    removed, unread_a = _alone(columns[0], pairing.removed, other, rules)
    added, unread_b = _alone(columns[1], pairing.added, one, ())
    alone: tuple[Alone, ...] = (("A", one, removed, other), ("B", other, added, one))
    files = FolderPair(one.folder, other.folder) if one.folder and other.folder else None
    found = ModelDiff(
        a=a,
        b=b,
        tensors_a=len(columns[0]),
        tensors_b=len(columns[1]),
        compared=len(pairing.pairs),
        counts={},
        added=added,
        removed=removed,
        unread=(*unread_a, *unread_b),
        renamed=pairing.renamed,
        clashes=pairing.clashes,
        shape=shape_changes(*columns, pairing),
        dtype=dtype_changes(*columns, pairing),
        values=measured.values if values else None,
        values_compared=values,
        tolerances=measured.tolerances,
        config=files.diff_files(CONFIG) if files else (),
        generation=files.diff_files(GENERATION) if files else (),
        tokenizer=files.diff_files(TOKENIZER) if files else (),
        template=files.diff_templates() if files else (),
        notes=(*_notes(one, other, pairing), *tied_notes(alone, values=values)),
        problems=(*one.problems, *other.problems, *measured.problems, *(files.problems if files else ())),
    )
    return replace(found, counts=_counts(found))


def _alone(
    columns: TensorColumns, rows: Sequence[int], other: Subject, rules: Sequence[Rule]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Tensors without a partner, and those whose partner may lie in a file of the other side that was not read."""
    tensors = [tensor(columns[row]) for row in rows]
    if other.unread is None:
        return (), tuple(tensors)
    if not other.unread:
        return tuple(tensors), ()
    names, bare = other.unread, set(map(bare_name, other.unread))
    maybe = [rewrite(each.name, rules)[0] in names or bare_name(each.name) in bare for each in tensors]
    return (
        tuple(each for each, unread in zip(tensors, maybe, strict=True) if not unread),
        tuple(each for each, unread in zip(tensors, maybe, strict=True) if unread),
    )


def _notes(one: Subject, other: Subject, pairing: Pairing) -> Iterator[Problem]:
    yield from (*one.notes, *other.notes, *pairing.notes)
    if one.folder is None or other.folder is None:
        found = "one side is a single file: configuration, tokenizer and template are not compared"
        yield Problem(severity="info", where="", found=found, code="single_file")


def _counts(found: ModelDiff) -> dict[str, int]:
    kinds = {kind: len(getattr(found, kind)) for kind in (*TENSOR_KINDS, "unread", "clashes")}
    verdicts = Counter(each.verdict for each in found.values or ())
    return kinds | ({kind: verdicts[kind] for kind in VALUE_KINDS} if found.values is not None else {})
