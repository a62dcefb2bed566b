"""What surrounds the figures of a report: where they were taken, how, what was expected, and how to take them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hfbench.compare.metrics import metrics_of, number
from hfbench.compare.subject import Measured, Subject, value_word
from hfbench.gpu.timing.formulas import FORMULAS
from hfbench.reports.document import Block, Cell, Code, Facts, Section, Table, Text
from hfbench.text import printable
from hfbench.units import show_bytes

MOST_COMMANDS = 20
INTERVALS = (
    "All raw samples are kept in the jobs. Percentiles are linear between closest ranks; the 95 % interval of a median"
    " comes from order statistics and takes samples to be independent."
)


def environment_section(subject: Subject) -> Section | None:
    """Every environment the steps ran in, each once."""
    found: dict[str, dict[str, Any]] = {}
    where: dict[str, list[str]] = {}
    for each in subject.measured:
        if each.environment:
            rows = dict(_environment(each.environment))
            if each.on:
                rows["executor"] = each.on
            key = repr({name: value for name, value in rows.items() if name != "load average"})
            found.setdefault(key, rows)
            where.setdefault(key, []).append(each.place or each.action)
    if not found and subject.environment:
        found = {"": dict(_environment(subject.environment))}
    blocks: list[Block] = []
    for key, rows in found.items():
        if len(found) > 1:
            places = where[key]
            more = f" and {len(places) - 6} more" if len(places) > 6 else ""
            blocks.append(Text(text=printable(f"{', '.join(places[:6])}{more}:")))
        blocks.append(Facts(rows=tuple((printable(name), printable(str(value))) for name, value in rows.items())))
    if not blocks:
        blocks = [Text(text="Nothing of it was kept.", tone="open")]
    return Section(title="Environment", blocks=tuple(blocks))


def method_section(subject: Subject) -> Section | None:
    """The formulas behind the metrics, and how intervals are made."""
    known: dict[str, tuple[str, str]] = {}
    for each in subject.measured:
        for name, metric in metrics_of(each.result).items():
            formula = FORMULAS.get(str(metric.summary.get("formula") or ""))
            if formula is not None:
                known.setdefault(name, (formula.id, formula.meaning))
    if not known:
        return None
    rows = tuple((Cell(printable(name)), Cell(formula), Cell(meaning)) for name, (formula, meaning) in known.items())
    return Section(
        title="Method",
        blocks=(Table(columns=("metric", "formula", "meaning"), rows=rows), Text(text=INTERVALS)),
    )


def expectations_section(subject: Subject) -> Section | None:
    """Every expectation of a script and how it went."""
    if not subject.expectations:
        return None
    words = {True: ("passed", "good"), False: ("failed", "bad"), None: ("not asked", "open")}
    rows = tuple(
        (
            Cell(printable(" ".join(f"{name}={value_word(value)}" for name, value in each.values.items()))),
            Cell(printable(each.text)),
            Cell(printable(each.actual)),
            Cell(words[each.ok][0], words[each.ok][1]),  # type: ignore[arg-type]
            Cell(printable(each.reason)),
        )
        for each in subject.expectations
    )
    return Section(
        title="Expectations", blocks=(Table(columns=("cell", "expected", "actual", "outcome", "why"), rows=rows),)
    )


def reproduce_section(subject: Subject, command: Callable[[Measured], str]) -> Section:
    """The script of a sweep, or the command of each step."""
    blocks: list[Block] = []
    if subject.script:
        blocks.append(Text(text="Save this as sweep.hfb.yaml and run: hfbench --script sweep.hfb.yaml"))
        blocks.append(Code(text=subject.script.rstrip(), language="yaml"))
        return Section(title="Run it again", blocks=tuple(blocks))
    commands = dict.fromkeys(filter(None, map(command, subject.measured)))
    if commands:
        blocks.append(Code(text="\n".join(list(commands)[:MOST_COMMANDS]), language="sh"))
    if len(commands) > MOST_COMMANDS:
        blocks.append(Text(text=f"And {len(commands) - MOST_COMMANDS} more of the same kind."))
    if not blocks:
        blocks.append(Text(text="The settings were not kept, so that no command can be told.", tone="open"))
    return Section(title="Run it again", blocks=tuple(blocks))


def _environment(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The parts of a fingerprint as names and values."""
    for name in ("host", "system", "kernel", "machine", "cpu", "cores"):
        if data.get(name) not in (None, ""):
            yield name, str(data[name])
    if (memory := number(data.get("memory_bytes"))) is not None:
        yield "memory", show_bytes(memory)
    if isinstance(load := data.get("load_average"), list):
        yield "load average", ", ".join(f"{each:.1f}" for each in map(number, load) if each is not None)
    yield from _gpus(data.get("gpus"))
    if data.get("python"):
        yield "python", str(data["python"])
    for part in ("versions", "variables"):
        if isinstance(inner := data.get(part), Mapping) and inner:
            yield part, ", ".join(f"{name} {value}" for name, value in inner.items())
    if isinstance(git := data.get("git"), Mapping):
        yield "commit of hfbench", f"{git.get('commit', '')}{', with changes' if git.get('dirty') else ''}"


def _gpus(data: object) -> Iterator[tuple[str, str]]:
    if not isinstance(data, Mapping):
        return
    if data.get("reason"):
        yield "GPUs", f"none: {data['reason']}"
        return
    devices = data.get("devices")
    names = (
        [str(each.get("name", "?")) for each in devices if isinstance(each, Mapping)]
        if isinstance(devices, list)
        else []
    )
    yield "GPUs", ", ".join(names) or "none"
    if data.get("driver"):
        yield "driver", str(data["driver"])
