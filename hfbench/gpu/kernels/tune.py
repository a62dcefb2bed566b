"""Finds the quickest configuration: the static table tells what cannot run, the rest is timed, each row is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hfbench.errors import UsageError
from hfbench.gpu.kernels.architectures import Architecture, find_architecture
from hfbench.gpu.kernels.loading import KernelFile
from hfbench.gpu.kernels.processes import Loading, unwatched
from hfbench.gpu.kernels.prune import prune
from hfbench.gpu.kernels.static import SECONDS as STATIC_SECONDS
from hfbench.gpu.kernels.static import analyse
from hfbench.gpu.kernels.timing_results import Answer, Device
from hfbench.gpu.kernels.timing_run import ask_device, chosen_dtypes, chosen_labels, chosen_sizes, timing_crew
from hfbench.gpu.kernels.tune_bench import Bench, CrewBench
from hfbench.gpu.kernels.tuned import (
    ANOTHER,
    Choice,
    DamagedTable,
    Entry,
    Key,
    Tuned,
    TunedRow,
    bucket_of,
    load_tuned,
    save,
    set_aside,
    source_hash,
)

Again = Literal["none", "failed", "all"]
Rank = Literal["cold", "warm", "cold graph", "warm graph"]


@dataclass(frozen=True, kw_only=True)
class TuneReport:
    """What tuning one kernel came to, key by key."""

    kernel: str
    file: str
    table: str
    on: Device
    arch: str
    tuned: tuple[Tuned, ...]
    notes: tuple[str, ...]


def tune(
    file: KernelFile,
    *,
    device: str,
    table: Path,
    arch: str = "",
    dtypes: Sequence[str] = (),
    sizes: Sequence[str] = (),
    config: str = "",
    again: Again = "none",
    rank: Rank = "cold",
    width: float,
    budget: float,
    seconds: float,
    watch: Callable[[int, int], None] = lambda done, total: None,
    loading: Loading = unwatched,
) -> TuneReport:
    """Tune a kernel for its sizes on one device and keep every row in `table` as soon as it is known.

    `arch` names what to prune for where the device says nothing, as the CPU does. UsageError for what the kernel does
    not declare or an architecture that is not known.
    """
    notes = list(_readable(table))
    with timing_crew(file, device, seconds, loading) as crew:
        plan = crew.load()
        bench = CrewBench(crew, ask_device(crew, device), width=width, budget=budget)
        if rank.endswith("graph") and bench.name == "cpu":
            raise UsageError(f"the CPU has no graphs to rank by {rank!r}", remedy="rank by cold or warm")
        target = _target(arch, bench.on)
        labels = chosen_labels(plan, config)
        problems = [(d, s) for d in chosen_dtypes(plan, dtypes) for s in chosen_sizes(plan, sizes)]
        notes += _notes(bench, target)
        pruned = {dtype: _pruned(file, target, dtype, config) for dtype in {dtype for dtype, _ in problems}}
        total, done, found = len(problems) * len(labels), 0, []
        watch(0, total)
        for dtype, shape in problems:
            search = _Search(plan, file, bench, table, dtype, shape, rank)
            for _ in search.run(labels, pruned[dtype], again):
                done += 1
                watch(done, total)
            found.append(search.result())
    return TuneReport(
        kernel=plan["name"],
        file=str(file.path),
        table=str(table),
        on=bench.on,
        arch=target.name if target else "",
        tuned=tuple(found),
        notes=tuple(notes),
    )


class _Search:
    """The configurations of one key."""

    def __init__(
        self,
        plan: Mapping[str, Any],
        file: KernelFile,
        bench: Bench,
        table: Path,
        dtype: str,
        shape: dict[str, int],
        rank: Rank,
    ) -> None:
        self._bench, self._table, self._shape, self._rank = bench, table, shape, rank
        self._choices = {each["label"]: _choice(each) for each in plan["configs"]}
        self._kept = 0
        self.key = Key(
            kernel=plan["name"],
            source=source_hash(file.digest, plan["neighbours"]),
            triton=plan["triton"],
            capability=bench.on.capability,
            dtype=dtype,
            bucket=bucket_of(shape),
        )

    def run(self, labels: Sequence[str], pruned: Mapping[str, str], again: Again) -> Iterator[TunedRow]:
        """Rows as they are known; those of an earlier run first, and those that are never run before the others."""
        entry = load_tuned(self._table).get(str(self.key))
        before = {row.choice.label: row for row in entry.rows if _stands(row, self._rank, again)} if entry else {}
        kept = [before[label] for label in labels if label in before]
        self._kept = len(kept)
        yield from kept
        left = [label for label in labels if label not in before]
        refused = [self._row(label, Answer(verdict="ok"), pruned[label]) for label in left if label in pruned]
        if refused:
            save(self._table, self.key, refused)
        yield from refused
        tasks = [
            {"config": label, "dtype": self.key.dtype, "shape": self._shape} for label in left if label not in pruned
        ]
        for place, answer in self._bench.answers(tasks):
            row = self._row(str(tasks[place]["config"]), answer)
            save(self._table, self.key, [row])
            yield row

    def result(self) -> Tuned:
        """What the file now says of the key."""
        entry = load_tuned(self._table).get(str(self.key)) or Entry(key=self.key, best=None, rows=[])
        return Tuned(
            key=self.key,
            shape=self._shape,
            best=entry.best,
            rows=entry.rows,
            kept=self._kept,
            alike=alike(entry.rows),
        )

    def _row(self, label: str, answer: Answer, pruned: str = "") -> TunedRow:
        bare = TunedRow(
            choice=self._choices[label],
            shape=self._shape,
            bench=self._bench.name,
            verdict="pruned" if pruned else answer.verdict,
            reason=pruned or answer.reason,
            rank=self._rank,
        )
        if bare.verdict != "ok":
            return bare
        ways = {f"{each.cache}{' graph' if each.graph else ''}": each for each in answer.timed}
        ranked = ways.get(self._rank)
        if ranked is None or ranked.time is None:
            return replace(bare, verdict="failed", reason=ranked.reason if ranked else f"was not run {self._rank}")
        return replace(
            bare,
            seconds=ranked.time.p50,
            low=ranked.time.ci_low,
            high=ranked.time.ci_high,
            samples=ranked.time.n,
            ways={way: each.time.p50 for way, each in ways.items() if each.time},
        )


def alike(rows: Sequence[TunedRow]) -> list[str]:
    """Configurations that are not told apart from the quickest: the intervals of their medians overlap its own."""
    fine = [row for row in rows if row.verdict == "ok"]
    if not fine or fine[0].high is None:
        return []
    top = fine[0].high
    return [row.choice.label for row in fine[1:] if row.low is not None and row.low <= top]


def _stands(row: TunedRow, rank: Rank, again: Again) -> bool:
    """Whether a row of an earlier run is taken as it is."""
    if again == "all" or (row.verdict == "ok" and row.rank != rank):
        return False
    return again == "none" or row.verdict in ("ok", "inapplicable", "pruned")


def _choice(config: Mapping[str, Any]) -> Choice:
    return Choice(
        label=config["label"],
        constants=dict(config["constants"]),
        num_warps=config["warps"],
        num_stages=config["stages"],
        options=dict(config["options"]),
    )


def _target(arch: str, on: Device) -> Architecture | None:
    """What to prune for: the GPU's own architecture, or on the CPU the one that was named."""
    if arch and on.capability != "cpu":
        raise UsageError(f"{on.name} has an architecture of its own", where="arch", remedy="leave it out")
    if arch:
        return find_architecture(arch)
    if on.capability == "cpu":
        return None
    try:
        return find_architecture(on.capability)
    except UsageError:
        return None  # a newer card than the table knows: what it refuses costs its own row


def _pruned(file: KernelFile, on: Architecture | None, dtype: str, config: str) -> dict[str, str]:
    if on is None:
        return {}
    return prune(analyse(file, [on], dtypes=(dtype,), config=config, seconds=STATIC_SECONDS).rows, on)


def _readable(table: Path) -> Iterator[str]:
    """Put a damaged file out of the way, and say so; UsageError for one that never held tuned configurations."""
    try:
        load_tuned(table)
    except DamagedTable as error:
        if not error.ours:
            raise UsageError(error.found, where=error.where, remedy=ANOTHER) from None
        yield f"{error.found}; it was kept as {set_aside(table)} and a new file begun"


def _notes(bench: Bench, target: Architecture | None) -> Iterator[str]:
    if bench.name == "cpu":
        yield "nothing was tuned: the CPU timed the reference in place of each configuration, and the rows say so"
    if target is None:
        yield "nothing was pruned: no architecture is known for this device"
