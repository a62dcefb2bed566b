"""A plan as a table that stays readable: targets that differ in layer, expert and rank alone are one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hfbench.convert.formats.layout import bytes_of
from hfbench.convert.plan import Dropped, Target

_RANK = re.compile(r"^mp_rank_[\d_]+:")
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)|(?<=weight)\d+$|(?<=bias)\d+$")


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """Targets of one kind. `shape` is that of the first, `bytes` are those of all."""

    target: str
    count: int
    sources: str
    transform: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    fill: str


@dataclass(frozen=True, kw_only=True)
class FileBytes:
    """A rank by the name of its folder, or a file, and the bytes of tensors it holds or loads."""

    name: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A layout, the bytes of weights on its fullest rank, and what speaks for it."""

    tp: int
    pp: int
    ep: int
    rank_bytes: int
    reason: str


@dataclass
class _Group:
    first: Target
    count: int = 0
    bytes: int = 0
    fill: str = ""


def plan_rows(targets: Iterable[Target]) -> tuple[PlanRow, ...]:
    """One row a kind of target, in the order of the plan."""
    groups: dict[tuple[str, str, str], _Group] = {}
    for target in targets:
        spec = target.spec
        key = (_NUMBER.sub("*", _RANK.sub("", spec.name)), target.transform, spec.dtype)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group(target)
        group.count += 1
        group.bytes += bytes_of(spec)
        group.fill = group.fill or target.fill
    return tuple(
        PlanRow(
            target=name,
            count=group.count,
            sources=folded(group.first.sources),
            transform=transform,
            dtype=dtype,
            shape=group.first.spec.shape,
            bytes=group.bytes,
            fill=group.fill,
        )
        for (name, transform, dtype), group in groups.items()
    )


def dropped_rows(dropped: Iterable[Dropped]) -> tuple[str, ...]:
    """`NAME: why` of what is left out, one for names that differ in layer, expert and rank alone, with their number."""
    counts: dict[tuple[str, str], list[str]] = {}
    for each in dropped:
        counts.setdefault((_NUMBER.sub("*", _RANK.sub("", each.source)), each.why), []).append(each.source)
    return tuple(
        f"{names[0] if len(names) == 1 else f'{len(names):,} x {pattern}'}: {why}"
        for (pattern, why), names in counts.items()
    )


def folded(names: Sequence[str]) -> str:
    """Names as one pattern: numbers as `*`, other parts that differ in braces.

    `x.0.q_proj.weight` and `x.0.k_proj.weight` become `x.*.{q,k}_proj.weight`.
    """
    patterns = list(dict.fromkeys(_NUMBER.sub("*", _RANK.sub("", name)) for name in names))
    parts = [name.split(".") for name in patterns]
    if len({len(each) for each in parts}) > 1:
        return ", ".join(patterns)
    return ".".join(_braced(list(dict.fromkeys(each))) for each in zip(*parts, strict=True))


def _braced(words: list[str]) -> str:
    if len(words) == 1:
        return words[0]
    end = 0
    while all(len(word) > end for word in words) and len({word[-1 - end] for word in words}) == 1:
        end += 1
    tail = words[0][len(words[0]) - end :] if end else ""
    return "{" + ",".join(word[: len(word) - end] for word in words) + "}" + tail
