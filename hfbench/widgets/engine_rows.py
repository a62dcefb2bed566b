"""Engines as rows of their table, and what is known of one as lines; no widget and no reading here."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.text import printable
from hfbench.units import show_bytes
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import Glyphs, State
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record

if TYPE_CHECKING:
    from hfbench.engines.compatibility.rule import Row
    from hfbench.engines.listing import Listed
    from hfbench.engines.manifest import Proof

VERDICTS: dict[str, State] = {"loads here": "ok", "will not load": "error", "damaged": "error"}
"""Any other is not known."""
STATUSES: dict[str, State] = {"mismatch": "error", "unknown": "unknown", "noted": "warn", "ok": "ok"}
"""In the order in which rules are told."""
OUTCOMES: dict[str, State] = {"loaded": "ok", "late": "unknown"}
PROOFS: dict[str, State] = {"proven": "ok", "differs": "error"}

COLUMNS = (
    Column("engine", "Engine", flexible=True, min=12, max=28, middle=True),
    Column("builder", "Builder"),
    Column("target", "Built for", priority=2, flexible=True, min=10, max=28),
    Column("dtype", "Dtype", priority=3),
    Column("shapes", "Shapes", priority=4, flexible=True, min=12, max=40),
    Column("verdict", "Verdict here", min=16),
    Column("why", "Why", priority=1, flexible=True, min=16, max=200),
)

BY_KEY = {
    "hfbench engine check hashes it without --no-hash": "c hashes it",
    "try it with --load": "l tries to load it",
    "build it again: hfbench engine build": "R builds it again",
}
"""What remedies of rules name, and the keys of these screens that do it."""

_SHAPES = re.compile(r"batch ([\d,]+), prompt ([\d,]+(?: to [\d,]+)?), context ([\d,]+)")


@dataclass(frozen=True, kw_only=True)
class EngineJob:
    """What the latest trial load of an engine came to."""

    job: str
    text: str
    state: State = ""
    at: float = 0.0
    """When it ended, in seconds since the epoch; infinite while it runs."""


def engine_record(listed: Listed, work: str, glyphs: Glyphs) -> Record:
    """One engine; `work` stands in place of its verdict while something is done with it."""
    state: State = "muted" if work else VERDICTS.get(listed.verdict, "unknown")
    told = facts_of(listed)
    checked = listed.checked
    cells = {
        "engine": os.path.basename(listed.path) or listed.path,
        "builder": checked.kind if checked else "",
        "target": told.get("built for", ""),
        "dtype": told.get("dtype", "").removesuffix(" none"),
        "shapes": short_shapes(told.get("shapes", "")),
        "verdict": work or f"{glyphs.sign(state)} {listed.verdict}",
        "why": reason(listed),
    }
    return Record(listed.path, cells, states={"verdict": state, "why": "muted"})


def short_shapes(text: str) -> str:
    """`batch 1, prompt 1 to 128, context 256` as `1 x 1-128 of 256`; whatever reads otherwise stays."""
    match = _SHAPES.fullmatch(text)
    return f"{match[1]} x {match[2].replace(' to ', '-')} of {match[3]}" if match else text


def facts_of(listed: Listed) -> dict[str, str]:
    """What its manifest or its files say, by label."""
    return {each.label: each.value for each in listed.checked.facts} if listed.checked else {}


def reason(listed: Listed) -> str:
    """The first thing that does not fit, in words."""
    if listed.checked is None:
        place, _, found = listed.trouble.partition(": ")
        return found if found and place.startswith(listed.path) else listed.trouble
    row = decisive(listed)
    return (row.found or _values(row)) if row else ""


def by_key(remedy: str) -> str:
    """A remedy as it is done here: where the rule names a command or an option, the key that does the same."""
    for command, key in BY_KEY.items():
        remedy = remedy.replace(command, key)
    return remedy


def decisive(listed: Listed) -> Row | None:
    """The first rule that does not fit, the worst first; None where all do."""
    rows = listed.checked.rules if listed.checked else ()
    wrong = (row for status in STATUSES if status != "ok" for row in rows if row.status == status)
    return next(wrong, None)


def verdict_lines(
    listed: Listed, width: int, glyphs: Glyphs, *, tried: EngineJob | None = None, whole: bool = False
) -> list[list[Span]]:
    """The verdict, what the engine is, and each rule with both values; `whole` adds what each rule says."""
    lines = facts_lines([*_head(listed, tried)], width, glyphs)
    if listed.checked is None:
        return lines
    rows = sorted(listed.checked.rules, key=lambda row: [*STATUSES].index(row.status))
    if rows:
        lines += [[], [("rule by rule", "title")], *facts_lines([*_rules(rows, whole=whole)], width, glyphs)]
    silent = [Fact("not told", text, "unknown") for text in listed.checked.silent]
    return lines + ([[], *facts_lines(silent, width, glyphs)] if silent else [])


def _head(listed: Listed, tried: EngineJob | None) -> Iterator[Fact]:
    checked = listed.checked
    yield Fact("verdict", listed.verdict, VERDICTS.get(listed.verdict, "unknown"))
    if why := reason(listed):
        yield Fact("", why)
    if (row := decisive(listed)) and row.remedy:
        yield Fact("do", by_key(row.remedy))
    yield Fact("engine", listed.path, "muted")
    if checked is None:
        return
    size = f", {show_bytes(checked.bytes)}" if checked.bytes else ""
    yield Fact("kind", f"{checked.what}{size}" + (f", id {checked.id}" if checked.id else ""))
    if checked.recipe:
        yield Fact("recipe", checked.recipe)
    for fact in checked.facts:
        yield Fact(fact.label, fact.value.removesuffix(" none"))
    if checked.built:
        yield Fact("built", checked.built)
    yield Fact("runs on", checked.device)
    if checked.manifest:
        yield Fact("proof", checked.proof, PROOFS.get(checked.proof, "unknown"))
    told = listed.tried
    if told is not None and (tried is None or told.at > tried.at):
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(told.at))
        where = f", with {told.environment}" if told.environment else ""
        text = told.found if told.outcome == "loaded" else f"{told.outcome}: {told.found}"
        yield Fact("trial load", f"{text} ({when}{where})", OUTCOMES.get(told.outcome, "error"))
    elif tried is not None and tried.at < listed.changed:
        told_then = f"none since its files were changed: l loads it; before that {tried.text} (job {tried.job})"
        yield Fact("trial load", told_then, "unknown")
    elif tried is not None:
        yield Fact("trial load", f"{tried.text} (job {tried.job})", tried.state)
    else:
        yield Fact("trial load", "none yet: l loads it in a process of its own", "muted")


def _rules(rows: Sequence[Row], *, whole: bool) -> Iterator[Fact]:
    for row in rows:
        state = STATUSES[row.status]
        yield Fact(row.id, _values(row), state)
        if row.found:
            yield Fact("", row.found)
        if row.remedy:
            yield Fact("do", by_key(row.remedy))
        if whole and row.rule:
            yield Fact("", row.rule, "muted")


def _values(row: Row) -> str:
    """Both values: `built 9.0, here 8.6`."""
    if row.here == "the same":
        return f"{row.built}, here the same".removeprefix(", ")
    told = [f"built {row.built}" if row.built else "", f"here {row.here}" if row.here else ""]
    return ", ".join(filter(None, told)) or row.status


# -- the proof ----------------------------------------------------------------

HEADER = ("batch", "prompt", "steps", "max error", "of largest", "alike", "greedy", "finite")
WIDTHS = (5, 8, 7, 11, 12, 8, 10, 8)


def proof_lines(proof: Proof | None, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """The verdict, and a row a shape the engine was compared with eager at."""
    if proof is None:
        return facts_lines(
            [Fact("proof", "none: the manifest tells of no comparison with eager", "unknown")], width, glyphs
        )
    head = [Fact("proof", proof.verdict, PROOFS.get(proof.verdict, "unknown"))]
    head += [Fact("", proof.why)] if proof.why else []
    where = ", ".join(filter(None, (proof.dtype, proof.device)))
    head += [Fact("against", f"eager{f' in {where}' if where else ''}, the same prompts, greedy")]
    if proof.tolerance:
        head.append(Fact("tolerance", f"{proof.tolerance:.1e} of the largest logit"))
    lines = facts_lines(head, width, glyphs)
    if proof.cases:
        titles = "".join(f"{text:>{size}}" for text, size in zip(HEADER, WIDTHS, strict=True))
        lines += [[], [(titles, "muted")]]
    for case in proof.cases:
        wrong = not case.finite or (proof.tolerance > 0 and case.relative > proof.tolerance)
        told = (
            f"{case.batch:,}",
            f"{case.prompt:,}",
            f"{case.steps:,}",
            f"{case.max_abs:.2e}",
            f"{case.relative:.2e}",
            f"{case.argmax_agreement:.1%}",
            "same" if case.greedy_equal else "differs",
            "yes" if case.finite else "no",
        )
        text = "".join(f"{each:>{size}}" for each, size in zip(told, WIDTHS, strict=True))
        lines.append([(text, ""), (f"  {glyphs.sign('error')}" if wrong else "", "error")])
    return lines


def note_lines(text: str, state: State, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """One sentence."""
    return facts_lines([Fact("", printable(text), state)], width, glyphs)
