"""A proof as lines for people and as a page in Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hfbench.convert.walls.results import (
    OWN_PASS,
    Core,
    Difference,
    ForwardWall,
    Parting,
    TaskWall,
    Verdict,
    Walls,
    WeightsWall,
)
from hfbench.convert.walls.verify import Proof
from hfbench.convert.walls.words import forward_words, task_words, weights_words
from hfbench.line_width import paragraph

MOST_SHOWN = 8
"""Differences told in a terminal; the report has all."""

NOT_ASKED = "megatron-core itself was not asked: --environment names a Python that has it"


def wall_lines(walls: Walls) -> Iterator[str]:
    """The three walls, a line for each and what is wrong below it."""
    for name, wall, told in (
        ("weights", walls.weights, weights_words(walls.weights)),
        ("forward", walls.forward, forward_words(walls.forward)),
        ("task", walls.task, task_words(walls.task)),
    ):
        head = f"{name:<9}{wall.verdict:<11}"
        for line in [told, *details(wall, MOST_SHOWN)]:
            yield from paragraph(line, first=head, later=" " * len(head)) or [head.rstrip()]
            head = " " * len(head)


def details(wall: WeightsWall | ForwardWall | TaskWall, most: int) -> list[str]:
    """What is wrong with a wall, and what it says beside its figures."""
    if isinstance(wall, WeightsWall):
        found = [difference_words(each) for each in wall.differences]
        over = [f"and {len(found) - most:,} more tensors differ"] if len(found) > most else []
        facts = [f"{each.argument} is {each.found}, {each.key} means {each.expected}" for each in wall.facts]
        return [*([wall.reason] if wall.reason and wall.tensors else []), *facts, *found[:most], *over]
    if isinstance(wall, ForwardWall):
        lines = [wall.reason] if wall.reason and wall.positions else []
        lines += [parting_words(wall.first_difference)] if wall.first_difference else []
        unasked = [NOT_ASKED] if wall.by == OWN_PASS and wall.verdict == "proven" else []
        return lines + ([core_words(wall.core)] if wall.core else unasked)
    return [line for line in task_details(wall) if line]


def difference_words(each: Difference) -> str:
    """A tensor and what is wrong with it."""
    told = f" ({each.elements:,} elements)" if each.elements > 1 else ""
    return f"{each.tensor}: {each.found}{told}"


def parting_words(first: Parting) -> str:
    """`they part in layer 2 (of 2, 3) at mp_rank_00_001:...: 6.6e-01`."""
    place = "before the first layer" if first.layer < 0 else f"in layer {first.layer}"
    place = "behind the last layer" if first.layer >= 0 and not first.layers else place
    others = f"; layers that part: {', '.join(map(str, first.layers))}" if len(first.layers) > 1 else ""
    return f"they part {place} at {first.tensor} ({first.relative:.1e}){others}"


def core_words(core: Core) -> str:
    """What megatron-core said."""
    named = f"megatron-core {core.version}".rstrip() + f" at TP {core.tp}, PP {core.pp}: {core.verdict}"
    if core.reason:
        return f"{named}: {core.reason}"
    return f"{named}, largest difference {core.max_abs:.1e} ({core.relative:.1e}), top-5 {core.top5:.1%}"


def task_details(wall: TaskWall) -> Iterator[str]:
    """A line for each comparison that has something to say."""
    if wall.tokenisation:
        told = f"{wall.tokenisation.tokens:,} tokens alike, {wall.tokenisation.special} special ones among them"
        yield f"tokenisation: {wall.tokenisation.reason or told}"
    if wall.perplexity and wall.perplexity.verdict == "differs":
        yield f"perplexity differs by {wall.perplexity.relative:.2%} over {wall.perplexity.tokens:,} tokens"
    if wall.greedy and wall.greedy.first_difference:
        yield f"generation: {wall.greedy.first_difference}"
    if wall.choices:
        right = f"{wall.choices.reference:.1%} and {wall.choices.converted:.1%} of {wall.choices.questions} right"
        yield f"choices: {wall.choices.reason or right}, {wall.choices.other_answers} answered differently"


def command_of(fields: Mapping[str, Any]) -> str:
    """The command that repeats the verification."""
    words = ["hfbench", "verify", str(fields["model"]), str(fields["converted"])]
    for name, value in fields.items():
        if name in ("model", "converted") or value in (None, "", ()):
            continue
        words += ["--" + name.replace("_", "-"), ",".join(value) if isinstance(value, tuple) else str(value)]
    return shlex.join(words)


def markdown(proof: Proof, command: str, environment: Mapping[str, str]) -> str:
    """The report: verdict, how to repeat it, environment, plan, walls."""
    walls = proof.walls
    lines = [
        f"# Conversion {proof.verdict}",
        "",
        f"- reference: `{proof.reference}`",
        f"- converted: `{proof.converted}` ({', '.join(filter(None, (proof.format, proof.layout, proof.family)))})",
        f"- took {proof.seconds:.1f} s",
        "",
        "Repeat it with",
        "",
        f"    {command}",
        "",
        "## Environment",
        "",
        *(f"- {name}: {value}" for name, value in environment.items()),
        "",
        "## Plan",
        "",
        *bullets([*proof.notes, *(f"left out {each}" for each in proof.dropped)]),
        "",
    ]
    said: list[tuple[str, Verdict, str, list[str]]] = [
        ("Weights", walls.weights.verdict, weights_words(walls.weights), details(walls.weights, 1_000_000)),
        ("Forward", walls.forward.verdict, forward_words(walls.forward), details(walls.forward, MOST_SHOWN)),
        ("Task", walls.task.verdict, task_words(walls.task), details(walls.task, MOST_SHOWN)),
    ]
    for name, verdict, words, more in said:
        lines += [f"## {name}: {verdict}", "", *bullets([each for each in (words, *more) if each]), ""]
    return "\n".join(lines)


def bullets(lines: Sequence[str]) -> list[str]:
    """Lines of a list; a line that says there are none."""
    return [f"- {line}" for line in lines] or ["- nothing to say"]
