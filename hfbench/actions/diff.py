"""diff: what sets one model apart from another: tensors, values on request, configuration, tokenizer, template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import HfbenchError, UsageError
from hfbench.exits import Exit
from hfbench.models.diff.facts import KeyDiff, ModelDiff, Tensor, ValueClass, ValueDiff
from hfbench.models.patterns import fold
from hfbench.models.problem import counted
from hfbench.text import clip_middle, printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WIDTH = 80
LABEL = 11
EXAMPLE = 28
"""Cells of a name that stands for others."""

SHOWN = 8
"""Lines of one kind of change; what is added and removed is always told in full, by pattern."""

VERDICTS: tuple[ValueClass, ...] = ("equal", "close", "differ", "unknown")
TENSOR_KINDS = ("added", "removed", "renamed", "shape", "dtype")
SECTIONS = ("config", "generation", "tokenizer", "template")

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


@dataclass(frozen=True, kw_only=True)
class DiffResult(ModelDiff):
    """What sets two models apart."""

    @property
    def exit(self) -> int:
        """0 the same, 1 different, 2 when something could not be compared."""
        return int(Exit.USAGE if self.problems else Exit.FAILED if self.differs else Exit.OK)

    @property
    def failed(self) -> bool:
        """True unless the two are the same."""
        return self.exit != Exit.OK

    @property
    def headline(self) -> str:
        """`different: 2 added, 1 dtype, 3 config`."""
        told = [f"{len(found):,} {kind}" for kind in TENSOR_KINDS if (found := getattr(self, kind))]
        apart = sum(each.verdict in ("close", "differ") for each in self.values or ())
        told += [f"{apart:,} values"] if apart else []
        told += [f"{len(found):,} {kind}" for kind in SECTIONS if (found := getattr(self, kind))]
        told += [counted(len(self.problems), "problem")] if self.problems else []
        verdict = ("same", "different", "trouble")[self.exit]
        return f"{verdict}: {', '.join(told)}" if told else verdict

    def lines(self) -> list[str]:
        """The differences for people, at most 80 columns wide."""
        rows = [
            ("A", self.a),
            ("B", self.b),
            ("tensors", f"A {self.tensors_a:,}, B {self.tensors_b:,}, {self.compared:,} compared"),
            *_labelled("added", "+", list(_tensor_lines(self.added))),
            *_labelled("removed", "-", list(_tensor_lines(self.removed))),
            *_labelled("renamed", "~", list(_rename_lines(self))),
            *_labelled("shape", "~", [f"{_shape(x.a)} -> {_shape(x.b)}  {x.name}" for x in self.shape], SHOWN),
            *_labelled("dtype", "~", list(_dtype_lines(self)), SHOWN),
            *_value_rows(self),
        ]
        for section in SECTIONS:
            rows += _labelled(section, "", [_key_line(each) for each in getattr(self, section)], SHOWN)
        lines = [f"{label:<{LABEL}}{_fit(text)}".rstrip() for label, text in rows]
        for place, problem in enumerate(self.problems):
            text = wrap(f"x {problem}", WIDTH - LABEL, max_lines=4, placeholder=" ...", break_on_hyphens=False)
            lines += [f"{'problems' if not place + number else '':<{LABEL}}{line}" for number, line in enumerate(text)]
        return [*lines, *wrap(self.headline, WIDTH)]


@action("diff", result=DiffResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Diff:
    """Compare two models: tensors, values on request, configuration, tokenizer and chat template."""

    a: str = param("Folder, repository in the cache, or one safetensors file", kind="model", positional=True)
    b: str = param("What to compare it with", kind="model", positional=True)
    values: bool = param("Read and compare the values too", default=False)
    include: tuple[str, ...] = param("Only tensors of these names, with * and ?", default=())
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> DiffResult:
        """Compare; UsageError, exit 2 as of diff(1), when a side cannot be opened at all."""
        from hfbench.models.diff.compare import diff_models

        try:
            found = diff_models(
                self.a,
                self.b,
                values=self.values,
                include=self.include,
                cache_dir=self.cache_dir,
                done=lambda done, total: run.progress("values", done, total, "B"),
            )
        except HfbenchError as error:
            if error.exit != Exit.FAILED:
                raise
            raise UsageError(error.found, where=error.where, remedy=error.remedy) from None
        return DiffResult(**{field.name: getattr(found, field.name) for field in fields(found)})


Row = tuple[str, str]


def _labelled(label: str, sign: str, texts: Sequence[str], most: int | None = None) -> list[Row]:
    rows = [("" if place else label, f"{sign} {text}".lstrip()) for place, text in enumerate(texts[:most])]
    if most is not None and len(texts) > most:
        rows.append(("", f"and {len(texts) - most:,} more (--json lists all)"))
    return rows


def _tensor_lines(tensors: Sequence[Tensor]) -> Iterator[str]:
    """One line for tensors that differ in their numbers alone."""
    kinds = Counter((fold(each.name), each.dtype, each.shape) for each in tensors)
    names = {(fold(each.name), each.dtype, each.shape): each.name for each in tensors}
    for (pattern, dtype, shape), count in kinds.items():
        what = f"{dtype} {_shape(shape)}"
        yield f"{names[pattern, dtype, shape]}  {what}" if count == 1 else f"{count:,} x {pattern}  {what}"


def _rename_lines(result: ModelDiff) -> Iterator[str]:
    kinds = Counter((each.dropped, each.gained) for each in result.renamed)
    first = {(each.dropped, each.gained): each.a for each in reversed(result.renamed)}
    for (dropped, gained), count in kinds.items():
        how = " for ".join(filter(None, [gained and f"'{gained}'", dropped and f"'{dropped}'"]))
        verb = "with" if gained else "without"
        example = clip_middle(printable(first[dropped, gained]), EXAMPLE, ellipsis="...")
        yield f"{counted(count, 'tensor')} {verb} {how}, such as {example}"


def _dtype_lines(result: ModelDiff) -> Iterator[str]:
    kinds = Counter((each.a, each.b) for each in result.dtype)
    first = {(each.a, each.b): each.name for each in reversed(result.dtype)}
    for (a, b), count in kinds.items():
        yield f"{a} -> {b}: {first[a, b]}" + (f" and {count - 1:,} more" if count > 1 else "")


def _value_rows(result: ModelDiff) -> Iterator[Row]:
    if result.values is None:
        if result.compared:
            yield "values", "not compared (--values reads them)"
        return
    counts = Counter(each.verdict for each in result.values)
    told = [f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts[verdict]]
    yield "values", ", ".join(told) or "none to compare"
    apart = [each for each in result.values if each.verdict != "equal"]
    worst = sorted(apart, key=lambda each: (each.verdict == "close", -(each.max_abs or 0.0)))
    yield from _labelled("", "", [_value_line(each) for each in worst], SHOWN)


def _value_line(value: ValueDiff) -> str:
    if value.note:
        return f"{value.verdict:<7} {value.note}  {value.name}"
    told = [
        f"{label} {number:.{digits}g}"
        for label, number, digits in (
            ("max", value.max_abs, 3),
            ("rel", value.relative_l2, 3),
            ("cos", value.cosine, 9),
        )
        if number is not None
    ]
    told += [f"{value.nonfinite:,} not finite"] if value.nonfinite else []
    return f"{value.verdict:<7} {' '.join(told)}  {value.name}"


def _key_line(each: KeyDiff) -> str:
    where = ": ".join(filter(None, [each.file, each.key]))
    if each.change == "changed":
        return f"{_SIGNS[each.change]} {where}: {_shown(each.a)} -> {_shown(each.b)}"
    value = each.b if each.change == "added" else each.a
    return f"{_SIGNS[each.change]} {where}" + (f": {_shown(value)}" if each.key else "")


def _shown(value: object) -> str:
    text = (
        {True: "true", False: "false", None: "null"}[value] if isinstance(value, bool) or value is None else str(value)
    )
    return clip_middle(printable(text), 28, ellipsis="...")


def _shape(shape: Sequence[int]) -> str:
    return clip_middle("x".join(map(str, shape)) or "scalar", 24, ellipsis="...")


def _fit(text: str) -> str:
    return clip_middle(printable(text), WIDTH - LABEL, ellipsis="...")
