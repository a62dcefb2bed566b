"""The differences of two models as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from hfbench.models.diff.facts import VALUE_KINDS, KeyDiff, ModelDiff, Tensor, ValueDiff, farthest_first
from hfbench.models.patterns import fold
from hfbench.models.problem import Problem, counted
from hfbench.text import clip_middle, printable

if TYPE_CHECKING:
    from hfbench.actions.diff import DiffResult

WIDTH = 80
LABEL = 11
EXAMPLE = 28
"""Cells of a name that stands for others."""

SHOWN = 8
"""Lines of one kind of change; what is added and removed is always told in full, by pattern."""

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}

Row = tuple[str, str]


def diff_lines(result: DiffResult, headline: str) -> list[str]:
    """The lines of a result, at most 80 columns wide; the last says it all in short."""
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
        *wrap(headline, WIDTH),
    ]


def _labelled(label: str, sign: str, texts: Sequence[str], most: int | None = None) -> list[Row]:
    rows = [("" if place else label, f"{sign} {text}" if sign else text) for place, text in enumerate(texts[:most])]
    if most is not None and len(texts) > most:
        rows.append(("", f"and {len(texts) - most:,} more (--json lists all)"))
    return rows


def _wrapped(label: str, sign: str, told: Sequence[Problem]) -> Iterator[str]:
    for place, problem in enumerate(told):
        text = wrap(f"{sign}{problem}", WIDTH - LABEL, max_lines=4, placeholder=" ...", break_on_hyphens=False)
        for number, line in enumerate(text):
            yield f"{'' if place or number else label:<{LABEL}}{line}"


def _tensor_lines(tensors: Sequence[Tensor]) -> Iterator[str]:
    """One line for tensors that differ in their numbers alone."""
    keys = list(zip(fold([each.name for each in tensors]), tensors, strict=True))
    kinds = Counter((pattern, each.dtype, each.shape) for pattern, each in keys)
    names = {(pattern, each.dtype, each.shape): each.name for pattern, each in keys}
    for (pattern, dtype, shape), count in kinds.items():
        what = f"  {dtype} {_shape(shape)}"
        name = names[pattern, dtype, shape] if count == 1 else f"{count:,} x {pattern}"
        yield _fit(name, WIDTH - LABEL - len("+ ") - len(what)) + what


def _rename_lines(result: ModelDiff) -> Iterator[str]:
    kinds = Counter((each.rule, each.by) for each in result.renamed)
    first = {(each.rule, each.by): each for each in reversed(result.renamed)}
    for (rule, by), count in kinds.items():
        how = "by their bytes" if by == "bytes" else f"({clip_middle(printable(rule), EXAMPLE, ellipsis='...')})"
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
    return clip_middle(printable(name), EXAMPLE, ellipsis="...")


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
    yield from _labelled("", "", list(_value_lines(apart)), SHOWN)
    for each in result.tolerances if apart else ():
        yield "", f"close: |a-b| <= {each.atol:.3g} + {each.rtol:.3g} max(|a|,|b|)  {each.dtypes}, {each.name}"


def _value_lines(apart: Sequence[ValueDiff]) -> Iterator[str]:
    """One line for tensors that differ in their numbers alone, with the figures of the first of them."""
    keys = list(zip(fold([each.name for each in apart]), (each.verdict for each in apart), strict=True))
    counts, first = Counter(keys), dict(zip(reversed(keys), reversed(apart), strict=True))
    for (pattern, verdict), count in counts.items():
        value = first[pattern, verdict]
        told = [
            f"{label} {number:.{digits}g}"
            for label, number, digits in (
                ("max", value.max_abs, 3),
                ("rel", value.relative_l2, 3),
                ("cos", value.cosine, 6),
            )
            if number is not None
        ]
        told += [f"{value.nonfinite:,} not finite"] if value.nonfinite else []
        name = value.name if count == 1 else f"{count:,} x {pattern}"
        yield _named(f"{verdict:<7} {' '.join(told) or value.note}", name)


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
        if len(line := f"{front}: {' -> '.join(texts)}") <= WIDTH - LABEL:
            yield line
        else:
            yield f"{front}:"
            yield "    " + " -> ".join(_shared(texts, WIDTH - LABEL - len("     -> ")))


def _shared(texts: list[str], room: int) -> list[str]:
    """The texts, the longer of them cut until all fit."""
    if sum(map(len, texts)) <= room:
        return texts
    half = max(room // len(texts), room - min(map(len, texts)) if len(texts) > 1 else 0)
    return [_fit(text, half) for text in texts]


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return printable(str(value))


def _shape(shape: Sequence[int]) -> str:
    return clip_middle("x".join(map(str, shape)) or "scalar", 24, ellipsis="...")


def _named(front: str, name: str, end: str = "", *, gap: str = "  ") -> str:
    """A line whose name is cut where there is too little room, never what stands around it."""
    room = WIDTH - LABEL - len("~ ") - len(front) - len(gap) - len(end)
    return f"{front}{gap}{_fit(name, max(room, 8))}{end}"


def _fit(text: str, room: int = WIDTH - LABEL) -> str:
    return clip_middle(printable(text), room, ellipsis="...")
