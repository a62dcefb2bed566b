"""The differences of two models as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hfbench.line_width import cut, paragraph, room
from hfbench.models.diff.facts import VALUE_KINDS, KeyDiff, ModelDiff, Tensor, ValueDiff, farthest_first
from hfbench.models.patterns import fold, fold_numbers
from hfbench.models.problem import Problem, counted
from hfbench.text import clip_middle, printable

if TYPE_CHECKING:
    from hfbench.actions.diff import DiffResult

LABEL = 11
VERDICT = 9
EXAMPLE = 28
"""Cells of a name that stands for others."""

SHOWN = 8
"""Lines of one kind of change; what is added and removed is always told in full, by pattern."""

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}

Row = tuple[str, str]


def diff_lines(result: DiffResult, headline: str) -> list[str]:
    """The lines of a result, as wide as the terminal; the last says it all in short."""
    rows = [
        ("A", result.a),
        ("B", result.b),
        ("tensors", f"A {result.tensors_a:,}, B {result.tensors_b:,}, {result.compared:,} compared"),
        *_labelled("added", "+", list(_tensor_lines(result.added))),
        *_labelled("removed", "-", list(_tensor_lines(result.removed))),
        *_labelled("unread", "?", list(_tensor_lines(result.unread)), SHOWN),
        *_labelled("renamed", "~", list(_rename_lines(result)), SHOWN),
        *_labelled("clash", "?", list(_clash_lines(result)), SHOWN),
        *_labelled("shape", "~", [_named(f"{_shape(x.a)} -> {_shape(x.b)}", x.name) for x in result.shape], SHOWN),
        *_labelled("dtype", "~", list(_dtype_lines(result)), SHOWN),
        *_value_rows(result),
    ]
    for section in ("config", "generation", "tokenizer", "template"):
        found: Sequence[KeyDiff] = getattr(result, section)
        rows += _labelled(section, "", [line for each in found for line in _key_lines(each)], 4 * SHOWN)
    if result.whole:
        rows.append(("all", result.whole))
    lines = [f"{label:<{LABEL}}{_fit(text)}".rstrip() for label, text in rows]
    return [
        *lines,
        *_wrapped("notes", "", result.notes),
        *_wrapped("problems", "x ", result.problems),
        *paragraph(headline),
    ]


def _labelled(label: str, sign: str, texts: Sequence[str], most: int | None = None) -> list[Row]:
    rows = [("" if place else label, f"{sign} {text}" if sign else text) for place, text in enumerate(texts[:most])]
    if most is not None and len(texts) > most:
        rows.append(("", f"and {len(texts) - most:,} more (--json lists all)"))
    return rows


def _wrapped(label: str, sign: str, told: Sequence[Problem]) -> Iterator[str]:
    for place, problem in enumerate(told):
        text = paragraph(f"{sign}{problem}", LABEL, most=4)
        for number, line in enumerate(text):
            yield f"{'' if place or number else label:<{LABEL}}{line}"


def _tensor_lines(tensors: Sequence[Tensor]) -> Iterator[str]:
    """One line for tensors that differ in their numbers alone."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}
    for pattern, each in zip(fold([each.name for each in tensors]), tensors, strict=True):
        groups.setdefault((pattern, each.dtype, each.shape), []).append(each.name)
    for (_, dtype, shape), names in groups.items():
        what = f"  {dtype} {_shape(shape)}"
        yield _fit(_gathered(names), room() - LABEL - len("+ ") - len(what)) + what


def _rename_lines(result: ModelDiff) -> Iterator[str]:
    kinds = Counter((each.rule, each.by) for each in result.renamed)
    first = {(each.rule, each.by): each for each in reversed(result.renamed)}
    for (rule, by), count in kinds.items():
        how = "by their bytes" if by == "bytes" else f"({_example(rule)})"
        each = first[rule, by]
        if count == 1:
            yield f"{_example(each.a)} -> {_example(each.b)} {how.replace('their', 'its')}"
        else:
            yield f"{count:,} tensors {how}, such as {_example(each.a)}"


def _clash_lines(result: ModelDiff) -> Iterator[str]:
    for each in result.clashes:
        sides = " and ".join(
            f"{counted(len(names), 'tensor')} of {side}, such as {_example(names[0])}"
            for side, names in (("A", each.a), ("B", each.b))
        )
        yield f"{_example(each.name)}: {sides}"


def _example(name: str) -> str:
    return clip_middle(printable(name), room(EXAMPLE, shares=3), ellipsis="...")


def _dtype_lines(result: ModelDiff) -> Iterator[str]:
    kinds = Counter((each.a, each.b) for each in result.dtype)
    first = {(each.a, each.b): each.name for each in reversed(result.dtype)}
    for (a, b), count in kinds.items():
        yield _named(f"{a} -> {b}:", first[a, b], f" and {count - 1:,} more" if count > 1 else "", gap=" ")


def _value_rows(result: ModelDiff) -> Iterator[Row]:
    if result.values is None:
        if result.compared:
            yield "values", "not compared (--values reads them)"
        return
    told = [f"{result.counts[verdict]:,} {verdict}" for verdict in VALUE_KINDS if result.counts.get(verdict)]
    shapes = [f"{result.counts['shape']:,} of another shape"] if result.counts.get("shape") else []
    yield "values", ", ".join(told + shapes) or "none to compare"
    apart = sorted((each for each in result.values if each.verdict != "equal"), key=farthest_first)
    groups = _value_groups(apart)
    for alike in groups[:SHOWN]:
        yield from _value_group_rows(alike)
    if len(groups) > SHOWN:
        yield "", f"and {len(groups) - SHOWN:,} more (--json lists all)"
    for each in result.tolerances if apart else ():
        yield "", f"close: |a-b| <= {each.atol:.3g} + {each.rtol:.3g} max(|a|,|b|)  {each.dtypes}, {each.name}"


def _value_groups(apart: Sequence[ValueDiff]) -> list[list[ValueDiff]]:
    """Tensors that differ in their numbers alone and judged alike, those first that come first."""
    groups: dict[tuple[str, str], list[ValueDiff]] = {}
    for pattern, each in zip(fold([each.name for each in apart]), apart, strict=True):
        groups.setdefault((pattern, each.verdict), []).append(each)
    return list(groups.values())


def _value_group_rows(alike: Sequence[ValueDiff]) -> Iterator[Row]:
    """Verdict and name, and below them the worst figures of the group: none of its members may hide behind another."""
    largest, relative, cosine = (
        pick((number for each in alike if (number := getattr(each, key)) is not None), default=None)
        for key, pick in (("max_abs", max), ("relative_l2", max), ("cosine", min))
    )
    figures = (("max", largest, 3), ("rel", relative, 3), ("cos", cosine, 6))
    told = [f"{label} {number:.{digits}g}" for label, number, digits in figures if number is not None]
    nonfinite = sum(each.nonfinite for each in alike)
    parts = [" ".join(told), f"{nonfinite:,} not finite" if nonfinite else ""]
    notes = list(dict.fromkeys(each.note for each in alike if each.note))
    below = ", ".join(filter(None, parts)) or "; ".join(notes[:2])
    yield "", f"{alike[0].verdict:<{VERDICT}}{_fit(_gathered([each.name for each in alike]), room() - LABEL - VERDICT)}"
    if below:
        yield "", " " * VERDICT + below


def _gathered(names: Sequence[str]) -> str:
    """A name, or how many there are and the one name they have but for their numbers."""
    return names[0] if len(names) == 1 else f"{len(names):,} x {fold_numbers(names)}"


def _key_lines(each: KeyDiff) -> Iterator[str]:
    front = f"{_SIGNS[each.change]} {': '.join(filter(None, [each.file, each.key]))}"
    if each.lines:
        yield f"{front}:"
        yield from each.lines
    elif not each.key and each.change != "changed":
        yield front
    else:
        values = {"added": (each.b,), "removed": (each.a,), "changed": (each.a, each.b)}[each.change]
        texts = [_shown(value) for value in values]
        if len(line := f"{front}: {' -> '.join(texts)}") <= room() - LABEL:
            yield line
        else:
            yield f"{front}:"
            yield "    " + " -> ".join(_shared(texts, room() - LABEL - len("     -> ")))


def _shared(texts: list[str], width: int) -> list[str]:
    """The texts, the longer of them cut until all fit."""
    if sum(map(len, texts)) <= width:
        return texts
    half = max(width // len(texts), width - min(map(len, texts)) if len(texts) > 1 else 0)
    return [_fit(text, half) for text in texts]


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return printable(str(value))


def _shape(shape: Sequence[int]) -> str:
    return clip_middle("x".join(map(str, shape)) or "scalar", room(24, shares=3), ellipsis="...")


def _named(front: str, name: str, end: str = "", *, gap: str = "  ") -> str:
    """A line whose name is cut where there is too little room, never what stands around it."""
    left = room() - LABEL - len("~ ") - len(front) - len(gap) - len(end)
    return f"{front}{gap}{_fit(name, max(left, 8))}{end}"


def _fit(text: str, width: int | None = None) -> str:
    return cut(printable(text), LABEL) if width is None else clip_middle(printable(text), width, ellipsis="...")
