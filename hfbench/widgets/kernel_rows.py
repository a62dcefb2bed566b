"""Kernels and their configurations as rows of a matrix with a column an architecture; a plain twin of its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hfbench.actions.kernel_static import USUAL
from hfbench.gpu.kernels.results import StaticRow
from hfbench.units import KIB
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import Glyphs, State

STATES: dict[str, State] = {
    "ok": "ok",
    "spills": "warn",
    "refused": "error",
    "failed": "error",
    "timeout": "unknown",
    "crash": "unknown",
}
_WORDS = {"failed": "fails", "timeout": "slow", "crash": "crash"}
NOT_YET = "-"
WAITS = "waits"
"""The work of a kernel that is compiled after another one."""

ARCH, VERDICT = 7, 9
"""Cells of the first two columns of what is told in full."""


@dataclass(frozen=True, kw_only=True)
class KernelState:
    """A kernel file and what is known of it. `kernel` is what actions take: its name, or the path of a file."""

    kernel: str
    name: str
    summary: str
    file: str
    rows: tuple[StaticRow, ...] = ()
    verdicts: Mapping[str, str] = field(default_factory=dict)
    """The sentence of each configuration, by its label."""
    work: str = ""
    """What is done with it now, such as `waits`."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The latest job of an action on a kernel: `what` is `check`, `time` or `tune`, `text` what it found."""

    what: str
    job: str
    text: str
    state: State = ""
    outdated: bool = False
    """Whether the kernel's file was written after the job began."""


@dataclass(frozen=True)
class MatrixRow:
    """A kernel, or one of its configurations by its label; `cells` by architecture."""

    state: KernelState
    config: str = ""
    cells: Mapping[str, StaticRow] = field(default_factory=dict)


def matrix_rows(states: Sequence[KernelState], folded: Collection[str]) -> list[MatrixRow]:
    """A row a kernel, each followed by its configurations unless it is folded."""
    rows = []
    for state in states:
        rows.append(MatrixRow(state))
        if state.kernel not in folded:
            rows += [MatrixRow(state, config, cells) for config, cells in by_config(state.rows).items()]
    return rows


def by_config(rows: Sequence[StaticRow]) -> dict[str, dict[str, StaticRow]]:
    """Rows by configuration and architecture, in the order of the kernel's declaration."""
    found: dict[str, dict[str, StaticRow]] = {}
    for row in rows:
        found.setdefault(row.config, {})[row.arch] = row
    return found


def label_of(row: MatrixRow, folded: Collection[str], glyphs: Glyphs) -> str:
    """The first column: a configuration is indented below its kernel."""
    if row.config:
        return f"  {row.config}"
    sign = "" if not row.state.rows else glyphs.folded if row.state.kernel in folded else glyphs.unfolded
    return f"{sign or ' '} {row.state.name}{f' ({row.state.work})' if row.state.work else ''}"


def cell_of(row: MatrixRow, arch: str, glyphs: Glyphs, *, wide: bool) -> tuple[str, State]:
    """A verdict in a word; where there is room, with registers and KiB of shared memory."""
    if not row.config:
        return _fine(row.state.rows, arch)
    found = row.cells.get(arch)
    if found is None:
        return NOT_YET, "muted"
    state = STATES[found.verdict]
    return " ".join(filter(None, (glyphs.sign(state), _word(found, wide=wide)))), state


def _fine(rows: Sequence[StaticRow], arch: str) -> tuple[str, State]:
    """How many configurations of a kernel are fine on an architecture."""
    known = [row for row in rows if row.arch == arch]
    if not known:
        return NOT_YET, "muted"
    fine = sum(row.verdict == "ok" for row in known)
    state: State = "ok" if fine == len(known) else "warn" if fine else "error"
    return f"{fine}/{len(known)}", state


def _word(row: StaticRow, *, wide: bool) -> str:
    held = row.shared_bytes or 0
    shared = f"{held / KIB:.0f}k" if held >= KIB else f"{held}B"
    if row.verdict == "ok":
        return f"{row.registers}r {shared}" if wide and row.registers is not None else ""
    if row.verdict == "spills":
        return f"spills {row.spills or row.loaded_spills}" if wide else "spill"
    if row.verdict == "refused":
        short_of = "smem" if row.shared_bytes is not None and row.shared_bytes > row.shared_limit else "tmem"
        return f"{short_of} {shared}" if wide and short_of == "smem" else short_of
    return _WORDS[row.verdict]


# -- the row under the cursor -------------------------------------------------


def row_lines(row: MatrixRow, width: int, glyphs: Glyphs, trials: Sequence[Trial] = ()) -> list[list[Span]]:
    """All that is known of a row, in lines of `width` cells; of a kernel, its `trials` too."""
    if row.config:
        return list(_config_lines(row, width, glyphs))
    return list(facts_lines([*_kernel_facts(row), *map(_trial, trials)], width, glyphs))


def _trial(trial: Trial) -> Fact:
    later = "; the file was changed since" if trial.outdated else ""
    return Fact(trial.what, f"{trial.text} (job {trial.job}{later})", trial.state)


def _kernel_facts(row: MatrixRow) -> Iterator[Fact]:
    state = row.state
    yield Fact("kernel", f"{state.name}: {state.summary}" if state.summary else state.name)
    yield Fact("file", state.file, "muted")
    if state.work:
        yield Fact("now", "waits for the job under way, which J opens" if state.work == WAITS else state.work)
    if not state.rows:
        yield Fact("verdicts", "not compiled yet: s compiles it, which needs no GPU", "unknown")
        return
    counts = Counter(each.verdict for each in state.rows)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    yield Fact("compiled", f"{len(by_config(state.rows))} configurations as {state.rows[0].dtype}: {told}")


def _config_lines(row: MatrixRow, width: int, glyphs: Glyphs) -> Iterator[list[Span]]:
    some = next(iter(row.cells.values()))
    how = f"{some.dtype}, {some.warps} warps, {some.stages} stages"
    yield from facts_lines([Fact(row.state.name, f"{row.config}: {how}")], width, glyphs)
    yield [(f"{'':<{ARCH + VERDICT}}{'regs':>6}{'spills':>8}{'shared bytes':>19}{'occupancy':>11}", "muted")]
    for arch in USUAL:
        if found := row.cells.get(arch):
            yield _figures(found, glyphs)
    if text := row.state.verdicts.get(row.config):
        states = {STATES[each.verdict] for each in row.cells.values()}
        worst: State = states.pop() if len(states) == 1 else "warn"  # fine here and refused there is neither
        told = [Fact("verdict", text, worst)]
        told += [Fact("", f"tensor cores by {some.matrix}", "muted")] if some.matrix else []
        yield from facts_lines(told, width, glyphs)


def _figures(row: StaticRow, glyphs: Glyphs) -> list[Span]:
    state = STATES[row.verdict]
    shared = f"{NOT_YET if row.shared_bytes is None else f'{row.shared_bytes:,}'} of {row.shared_limit:,}"
    share = f"{row.occupancy:.0%}" if row.occupancy else NOT_YET
    by = f"  by {row.limited_by}" if row.limited_by else ""
    return [
        (f"{row.arch:<{ARCH}}", "muted"),
        (f"{' '.join(filter(None, (glyphs.sign(state), _word(row, wide=False)))):<{VERDICT}}", state),
        (f"{_number(row.registers):>6}{_number(row.spills):>8}{shared:>19}{share:>11}", ""),
        (by, "muted"),
    ]


def _number(value: int | None) -> str:
    return NOT_YET if value is None else f"{value:,}"
