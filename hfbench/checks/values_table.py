"""The figures of a model's values as lines for people: what was read, and the tensors that stand out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hfbench.line_width import cut
from hfbench.models.problem import counted
from hfbench.models.values.facts import LOST, TensorValues, ValueScan
from hfbench.text import cells, printable
from hfbench.units import MIB, show_bytes, show_count, show_seconds

MOST = 10
"""Tensors with something wrong that are listed."""

LARGEST = 3
"""Tensors listed where nothing is wrong: those of the largest magnitudes."""

_SIDES = "<>>>><"
_HEAD = ("dtype", "absmax", "NaN", "Inf", "zero", "")


def value_lines(scan: ValueScan) -> list[str]:
    """As wide as the terminal: a line on the whole, then a table of the worst tensors."""
    rate = scan.bytes / scan.seconds if scan.seconds and scan.bytes >= MIB else 0.0
    told = [
        f"{counted(scan.measured, 'tensor')} measured, {show_bytes(scan.bytes)} in {show_seconds(scan.seconds)}",
        f"{show_bytes(rate)}/s" if rate else "",
        f"{scan.unmeasured:,} not measured" if scan.unmeasured else "",
    ]
    lines = [f"values  {', '.join(filter(None, told))}"]
    worst = sorted((each for each in scan.tensors if _wrong(each)), key=_badness)
    if worst:
        more = f"{len(worst) - MOST:,} more; --json lists all" if len(worst) > MOST else ""
        return [*lines, *_table("worst tensors", worst[:MOST]), *filter(None, [more])]
    largest = sorted(
        (each for each in scan.tensors if each.absmax is not None and each.absmin is not None),
        key=lambda each: -(each.absmax or 0.0),
    )
    return [*lines, *_table("largest magnitudes", largest[:LARGEST])]


def _wrong(each: TensorValues) -> bool:
    weight = bool(each.constant) and len(each.shape) > 1
    return bool(each.nan or each.inf or each.float16_inf or each.lost_share >= LOST or weight)


def _badness(each: TensorValues) -> tuple[bool, bool, float, float]:
    """NaN and infinities first, then what float16 overflows, then what it loses, then what is constant."""
    return not (each.nan or each.inf), not each.float16_inf, -each.lost_share, -(each.absmax or 0.0)


def _table(title: str, tensors: Sequence[TensorValues]) -> Iterator[str]:
    if not tensors:
        return
    rows = [_HEAD, *map(_cells, tensors)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    taken = sum(widths) + 2 * len(widths)
    names = [title, *(cut(printable(each.name), taken) for each in tensors)]
    room = max(map(cells, names))
    for name, row in zip(names, rows, strict=True):
        aligned = [f"{cell:{side}{width}}" for cell, side, width in zip(row, _SIDES, widths, strict=True)]
        yield "  ".join([name + " " * (room - cells(name)), *aligned]).rstrip()


def _cells(each: TensorValues) -> tuple[str, ...]:
    return (
        each.dtype,
        "" if each.absmax is None else f"{each.absmax:.3g}",
        show_count(each.nan or 0),
        show_count(each.inf or 0),
        _share(each.zero_fraction or 0.0),
        _remark(each),
    )


def _remark(each: TensorValues) -> str:
    if each.float16_inf:
        return f"float16: {show_count(each.float16_inf)} Inf"
    if each.lost_share >= LOST:
        return f"float16: {_share(each.lost_share)} lost"
    return "one value" if each.constant else ""


def _share(part: float) -> str:
    """`0%` only of none and `100%` only of all."""
    if 0 < part < 0.001:
        return "<0.1%"
    return "99.9%" if 0.999 < part < 1 else f"{part:.0%}" if part in (0, 1) else f"{part:.1%}"
