"""The plan of a conversion as records of a table, and a row of it in full; plain twins of the table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hfbench.convert.plan_table import FileBytes, PlanRow, folded
from hfbench.models.problem import counted
from hfbench.units import show_bytes
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.glyphs import State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

COLUMNS = (
    Column("target", "Becomes", flexible=True, min=16, max=64, middle=True),
    Column("how", "How", priority=1, flexible=True, min=18, max=40),
    Column("sources", "Of", priority=3, flexible=True, min=20, max=64, middle=True),
    Column("shape", "Shape", align="right", priority=4),
    Column("count", "Tensors", align="right", priority=2),
    Column("bytes", "Bytes", align="right"),
)

LAYERS = ("decoder.layers.*.", "model.layers.*.")
"""What names of layers begin with: most rows do, so that a star stands for it."""

WHOLE = "all ranks"
"""The name of files that all ranks read."""

COPY = "the same on a rank before it"
"""Why copies are left out, as plans of the way back say it: nothing is lost with them."""

TIMES = re.compile(r"(\d+) x ")
"""What names begin with that stand for several."""

WARN: Mapping[str, State] = {"how": "warn"}
MUTED: Mapping[str, State] = {"target": "muted", "how": "muted"}


@dataclass(frozen=True)
class PlanRows:
    """The records of a table, and by their keys what each stands for in full."""

    records: tuple[Record, ...] = ()
    facts: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)


def plan_rows(result: Any) -> PlanRows:
    """Rows of the plan, then what is left out, then notes, then the launch flags."""
    found = [*map(_planned, result.plan), *_left_out(result.dropped), *map(_note, result.notes)]
    if flags := getattr(result, "launch_flags", ()):
        found.append(_launch(flags))
    keyed = {str(number): each for number, each in enumerate(found)}
    records = tuple(Record(key, cells, states) for key, (cells, states, _) in keyed.items())
    return PlanRows(records, {key: facts for key, (_, _, facts) in keyed.items()})


Told = tuple[Mapping[str, str], Mapping[str, State], tuple[Fact, ...]]
"""Cells of a record, their states, and the record in full."""


def _planned(row: PlanRow) -> Told:
    cells = {
        "target": shortened(row.target),
        "how": row.transform + (f", {row.fill}" if row.fill else ""),
        "sources": shortened(row.sources),
        "count": f"{row.count:,}",
        "shape": "x".join(map(str, row.shape)) or "scalar",
        "bytes": show_bytes(row.bytes),
    }
    facts = (
        Fact("becomes", row.target),
        Fact("made of", row.sources),
        Fact("how", row.transform + (f"; the rest is filled with {row.fill}" if row.fill else "")),
        Fact("each", f"{' x '.join(map(str, row.shape)) or 'a scalar'} {row.dtype}"),
        Fact("in all", f"{counted(row.count, 'tensor')}, {show_bytes(row.bytes)}"),
    )
    return cells, {"sources": "muted"}, facts


def _left_out(dropped: Sequence[str]) -> Iterator[Told]:
    """What has no place, one record for all that differ in layer, expert and rank alone."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in dropped:
        name, _, why = each.partition(": ")
        times = TIMES.match(name)
        count, name = (int(times[1]), name[times.end() :]) if times else (1, folded([name]))
        counts["copies on other ranks" if why == COPY else name, why] += count
    for (name, why), count in counts.items():
        lost = why != COPY
        how = f"! left out: {why}" if lost else why
        cells = {"target": shortened(name), "how": how, "count": f"{count:,}"}
        because = Fact("because", why, "warn" if lost else "")
        yield cells, WARN if lost else MUTED, (Fact("left out", name), because, Fact("in all", f"{count:,}"))


def _note(text: str) -> Told:
    return {"target": "note", "how": text}, MUTED, (Fact("note", text),)


def _launch(flags: Sequence[str]) -> Told:
    facts = [Fact("launch" if not at else "", each) for at, each in enumerate(_flag_lines(flags))]
    beside = Fact("", "written beside the weights as launch_flags.txt", "muted")
    return {"target": "launch flags", "how": " ".join(flags)}, MUTED, (*facts, beside)


def shortened(name: str) -> str:
    """A name without what nearly all names have alike: `*.linear_qkv`, `*.mlp.linear_fc1`."""
    short = next((f"*.{name[len(each) :]}" for each in LAYERS if name.startswith(each)), name)
    for inner in ("self_attention.", "self_attn."):
        short = short.replace(f"*.{inner}", "*.")
    short = re.sub(r"\*\.mlp\.((?:shared_)?experts?\.)", r"*.\1", short)
    return short.replace(".weight*", "*").removesuffix(".weight")


def files_line(ranks: Sequence[FileBytes], total: int) -> str:
    """`6 ranks of 22.5 MiB`, `2 files of 20.0 MiB to 22.5 MiB`."""
    kinds = [rank.name for rank in ranks]
    if not ranks or kinds == [WHOLE]:
        return f"{show_bytes(total)} in all"
    least, most = (show_bytes(each(rank.bytes for rank in ranks)) for each in (min, max))
    kind = "rank" if kinds[0].startswith("mp_rank") else "file"
    return f"{counted(len(ranks), kind)} of {least if least == most else f'{least} to {most}'}"


def _flag_lines(flags: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for word in flags:
        if lines and not word.startswith("--"):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
