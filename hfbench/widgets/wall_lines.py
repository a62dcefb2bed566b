"""A conversion and its proof as aligned lines: where it goes, how far it is, and three walls that fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hfbench.errors import HfbenchError
from hfbench.jobs.snapshot import PhaseProgress
from hfbench.jobs.state import State as JobState
from hfbench.units import show_bytes, show_elapsed
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.glyphs import Glyphs, State

WALLS = ("weights", "forward", "task")

STATES: dict[str, State] = {"proven": "ok", "differs": "error", "could not": "unknown", "not asked": "muted"}
"""What a verdict looks like; its word always stands beside it."""

BAR = 16
"""Cells of a bar of progress."""


@dataclass(frozen=True, kw_only=True)
class WallTold:
    """What is known of a wall: its verdict, its figures, and what is wrong with it."""

    verdict: str
    words: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Doing:
    """A job that converts or proves, as far as it is."""

    job: str
    action: str
    about: tuple[str, ...]
    """The folder that a conversion makes; the two that a proof compares."""
    state: JobState = JobState.STARTING
    phases: tuple[PhaseProgress, ...] = ()
    waits_for: str = ""
    walls: Mapping[str, WallTold] = field(default_factory=dict)
    """Verdicts of a proof so far, by the names of walls."""
    result: Any = None
    error: HfbenchError | None = None

    @property
    def live(self) -> bool:
        """True until the job is over."""
        return not self.state.over

    @property
    def finished(self) -> bool:
        """True once it ended with a result."""
        return self.state is JobState.FINISHED


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Everything the lines tell."""

    folder: str
    taken: bool = False
    """Something lies in that place already."""
    plan: str = ""
    """What would be written, in figures; empty while there is no plan."""
    planning: bool = False
    notes: Sequence[str] = ()
    """What the plan says beside its rows; told until it is written."""
    conversion: Doing | None = None
    made_elsewhere: str = ""
    """The other folder that the conversion under way makes."""
    proof: Doing | None = None
    proven_elsewhere: str = ""
    """The other folder that the proof under way is about."""
    environment: str = ""
    """The environment whose megatron-core is to be asked too."""
    walls: Sequence[str] = WALLS
    """Those that are asked for."""
    why_not_all: str = ""
    """Why not all of them are."""


def scene_facts(scene: Scene, glyphs: Glyphs) -> list[Fact]:
    """The folder, the conversion, the walls, the report; nothing before it is known what is to be converted."""
    if not scene.folder:
        return []
    made = scene.conversion is not None and scene.conversion.finished
    unsaid = scene.conversion is None or bool(scene.made_elsewhere)
    known = f"{scene.folder}, where something lies already" if scene.taken and unsaid else scene.folder
    facts = [Fact("to", known, "warn" if known != scene.folder else ""), _conversion(scene, glyphs)]
    finished = scene.proof is not None and scene.proof.finished
    if scene.proof is not None and finished:
        state = STATES.get(getattr(scene.proof.result, "verdict", ""), "")
        facts.append(Fact("proof", str(getattr(scene.proof.result, "headline", "finished")), state))
    if scene.proven_elsewhere:
        facts.append(Fact("proof", f"under way of another folder, {scene.proven_elsewhere}", "warn"))
    for name in WALLS:
        facts += _wall(name, scene, glyphs, ready=made or scene.taken)
    reports = getattr(scene.proof.result, "reports", ()) if scene.proof is not None and finished else ()
    notes = scene.notes if scene.conversion is None and scene.proof is None else ()
    facts += [Fact("" if place else "note", each) for place, each in enumerate(notes)]
    return facts + [Fact("report", each) for each in reports[:1]]


def progress_words(phase: PhaseProgress | None, glyphs: Glyphs, *, named: bool = True) -> str:
    """`convert ########.... 57% 4.5 of 8.0 GiB, 1.2 GiB/s, ~40 s left`; the name alone where nothing is counted."""
    if phase is None:
        return "begins"
    told = [phase.phase] if named else []
    if phase.share is not None:
        told += [glyphs.bar(phase.share, BAR), f"{int(phase.share * 100 + 1e-9)}%"]
    if phase.unit == "B":
        total = f" of {show_bytes(phase.total)}" if phase.total else ""
        figures = [f"{show_bytes(phase.done)}{total}"]
        rate = phase.rate(phase.at)
        figures += [f"{show_bytes(rate)}/s"] if rate else []
    elif phase.total and phase.total > 1:
        figures = [f"{phase.done:,.0f} of {phase.total:,.0f} {phase.unit}".rstrip()]
    else:
        figures = []
    left = phase.left(phase.at)
    if left and left >= 1:
        figures.append(f"~{show_elapsed(left)} left")
    return " ".join([*told, ", ".join(figures)]).rstrip()


def wall_of(phase: str, told: Mapping[str, WallTold], asked: Sequence[str]) -> str:
    """The wall that a phase of a proof belongs to: the one it begins with, else the first without a verdict that runs
    models."""
    name = phase.partition(" ")[0]
    return name if name in WALLS else next((each for each in asked[1:] if each not in told), "")


def _conversion(scene: Scene, glyphs: Glyphs) -> Fact:
    doing = scene.conversion
    if doing is None:
        if scene.planning:
            return Fact("convert", "planning ...", "muted")
        return Fact("convert", f"x writes {scene.plan}" if scene.plan else "there is no plan to convert by", "muted")
    if doing.state is JobState.QUEUED:
        return Fact("convert", f"queued: waits for {doing.waits_for or 'its turn'}")
    if doing.live:
        phase = doing.phases[-1] if doing.phases else None
        words = progress_words(phase, glyphs, named=phase is not None and phase.phase != "convert")
        words = f"into another folder, {scene.made_elsewhere}: {words}" if scene.made_elsewhere else words
        return Fact("convert", f"{doing.state}: {words}" if doing.state is JobState.CANCELLING else words)
    if doing.finished:
        return Fact("convert", str(getattr(doing.result, "headline", "finished")), "ok")
    if doing.state is JobState.CANCELLED:
        return Fact("convert", "cancelled; x goes on where it stopped", "warn")
    return Fact("convert", f"{doing.state}: {doing.error or 'no reason was left'}; x tries again", "error")


def _wall(name: str, scene: Scene, glyphs: Glyphs, *, ready: bool) -> list[Fact]:
    proof = scene.proof
    if proof is None:
        if name not in scene.walls:
            return [Fact(name, f"will not be asked{': ' + scene.why_not_all if scene.why_not_all else ''}", "muted")]
        too = f", with megatron-core of {scene.environment}" if scene.environment and name == "forward" else ""
        return [Fact(name, f"not asked yet: V proves it{too}" if ready else f"nothing to prove yet{too}", "muted")]
    if told := proof.walls.get(name):
        words = ": ".join(filter(None, (told.verdict, told.words)))
        return [Fact(name, words, STATES.get(told.verdict, "")), *(Fact("", each) for each in told.details)]
    if proof.live:
        return [_live_wall(name, proof, scene, glyphs)]
    if proof.state is JobState.CANCELLED:
        return [Fact(name, "cancelled; V looks again", "warn")]
    if name == WALLS[0]:
        return [Fact(name, f"{proof.state}: {proof.error or 'no reason was left'}; V looks again", "error")]
    return [Fact(name, "not looked at", "muted")]


def _live_wall(name: str, proof: Doing, scene: Scene, glyphs: Glyphs) -> Fact:
    phase = proof.phases[-1] if proof.phases else None
    current = wall_of(phase.phase, proof.walls, scene.walls) if phase is not None else ""
    if phase is not None and current == name:
        part = replace(phase, phase=phase.phase.removeprefix(name).lstrip())
        return Fact(name, progress_words(part, glyphs, named=bool(part.phase)))
    if current and WALLS.index(name) < WALLS.index(current):
        return Fact(name, "was looked at; the verdict comes with the last wall", "muted")
    return Fact(name, "waits" if name in scene.walls else "not asked", "muted")
