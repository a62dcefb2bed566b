"""Checks one engine: what it depends on against what is here, and on request whether its runtime takes it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.engines.checked import Checked
from hfbench.engines.compatibility.bare import judge_found
from hfbench.engines.compatibility.judge import Verdict, judge
from hfbench.engines.compatibility.python import TRY
from hfbench.engines.compatibility.rule import Case, Row
from hfbench.engines.files import look_at_files
from hfbench.engines.machine import Machine, read_machine
from hfbench.engines.manifest import Manifest, engine_folder, fingerprint, read_told, recipe_of
from hfbench.engines.reading.found import Fact, Found, facts
from hfbench.engines.trial.told import Named, Trial
from hfbench.errors import UsageError
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.environments import Environment

Progress = Callable[[int, int], None]

AFTER: dict[str, Verdict] = {"loaded": "loads here", "refused": "will not load", "crashed": "will not load"}
"""Verdicts by what a trial came to; any other leaves it open."""


@dataclass(frozen=True, kw_only=True)
class How:
    """How an engine is to be checked. `patience` is seconds for a trial load."""

    hashing: bool = True
    load: bool = False
    environment: str = ""
    device: str = "auto"
    machine: Path | None = None
    """A file that describes another machine."""
    suppose: tuple[str, ...] = ()
    patience: float = 300.0
    log: Path | None = None


def check_engine(
    path: Path,
    how: How,
    *,
    progress: Progress = lambda done, total: None,
    waiting: Callable[[float], None] = lambda seconds: None,
    machines: Machines | None = None,
) -> Checked:
    """The verdict on an engine. `progress` is told bytes hashed and bytes in all, `waiting` the seconds of a trial;
    `machines` are those that an earlier check has asked already.

    NoEngine and ManifestError say what keeps it from being one; MissingError when the environment does not answer.
    """
    _refuse_mixed(how)
    folder = engine_folder(path)
    seen = machines or Machines(how)
    checked = _with_manifest(folder, how, seen, progress) if folder else _without(path, how, seen)
    if how.log:
        checked = replace(checked, reasons=_reasons_in(how.log))
        if any(each.fatal for each in checked.reasons):
            checked = replace(checked, verdict="will not load")
    if how.load:
        return _tried(checked, how, seen, waiting)
    return checked


def _refuse_mixed(how: How) -> None:
    """UsageError for what cannot be asked of one check: a described machine loads nothing and has one Python."""
    other = "machine" if how.machine else "suppose" if how.suppose else ""
    if how.load and other:
        found = f"load and {other} were given: an engine is loaded by this machine as it is"
        raise UsageError(found, where="engine.check", remedy="ask for one of them")
    if how.environment and how.machine:
        found = "machine and environment were given, and the file of a machine holds the versions of one Python"
        raise UsageError(found, where="engine.check", remedy="give --environment to hfbench engine machine there")


class Machines:
    """The machine as it is asked for: with its GPUs only for engines that need one, and once."""

    def __init__(self, how: How) -> None:
        self._how = how
        self._read: dict[bool, Machine] = {}
        self.environment: Environment | None = None
        self._probed = None
        self._described = None
        if how.machine:
            from hfbench.engines.described import read_described

            self._described = read_described(how.machine)
        if how.environment:
            from hfbench.environments import find, probe

            self.environment = find(how.environment)
            self._probed = probe(self.environment)
            self._probed.require_answer(how.environment)

    def read(self, *, gpus: bool) -> Machine:
        """The machine with the versions of the environment, if one was named."""
        if gpus not in self._read:
            self._read[gpus] = self._asked_for(gpus=gpus)
        return self._read[gpus]

    def _asked_for(self, *, gpus: bool) -> Machine:
        if self._described:
            told = self._described
            machine = replace(told.machine, environment=told.machine.environment or told.host)  # nothing of it is here
        else:
            machine = read_machine(gpus=gpus, environment=self._probed, name=self._how.environment)
            behind = self.environment is not None and self.environment.python is None
            machine = replace(machine, elsewhere=behind)
        if not self._how.suppose:
            return machine
        from hfbench.engines.described import supposed

        return supposed(machine, self._how.suppose)

    @property
    def told(self) -> str:
        """Which machine and which Python the verdict is about."""
        how = self._how
        if self._described:
            of = f"{self._described.host}, as {how.machine} tells it"
        else:
            python = self._probed.python if self._probed else platform.python_version()
            of = f"Python {python}, {' '.join(self.command)}"
        return f"{of}, supposing {', '.join(how.suppose)}" if how.suppose else of

    @property
    def card(self) -> int:
        """The number of the GPU that was asked for."""
        from hfbench.gpu.devices import parse_device

        return parse_device(self._how.device) or 0

    @property
    def command(self) -> tuple[str, ...]:
        """What starts the Python for a trial."""
        return self.environment.command if self.environment else (sys.executable,)


def _with_manifest(folder: Path, how: How, seen: Machines, progress: Progress) -> Checked:
    told = read_told(folder)
    manifest = told.manifest
    on_gpu = manifest.built_on.gpu is not None
    here = seen.read(gpus=on_gpu)
    files = look_at_files(folder, manifest.files, hashing=how.hashing, progress=progress)
    card = seen.card if on_gpu else 0
    judged = judge(Case(manifest=manifest, here=here, files=files, sealed=told.sealed, card=card))
    return Checked(
        verdict=judged.verdict,
        engine=str(folder),
        kind=manifest.builder,
        what=f"{manifest.builder} engine",
        manifest=True,
        id=fingerprint(manifest),
        recipe=recipe_of(manifest),
        built=f"{manifest.created} by hfbench {manifest.hfbench}",
        bytes=sum(each.size for each in manifest.files),
        device=_device(here, card) if on_gpu else "cpu",
        environment=how.environment,
        python=seen.told,
        proof=manifest.proof.verdict if manifest.proof else "none",
        rules=_doable(judged.rows, how),
        facts=_facts_of(manifest),
    )


def _without(path: Path, how: How, seen: Machines) -> Checked:
    from hfbench.engines.reading.recognise import read_engine

    found = read_engine(path)
    on_gpu = found.kind in ("trtllm", "plan") or (found.built_on is not None and found.built_on.gpu is not None)
    here = seen.read(gpus=on_gpu)
    judged = judge_found(found, here, card=seen.card if on_gpu else 0)
    return Checked(
        verdict=judged.verdict,
        engine=str(found.path),
        kind=found.kind,
        what=f"{found.what} without a manifest",
        manifest=False,
        bytes=found.size,
        device=_device(here, seen.card) if on_gpu else "cpu",
        environment=how.environment,
        python=seen.told,
        rules=_doable(judged.rows, how),
        facts=(*found.facts, *_demands(found)),
        silent=found.silent,
    )


def _doable(rows: tuple[Row, ...], how: How) -> tuple[Row, ...]:
    """The rows with remedies that can be had: a machine that is only described loads nothing."""
    if not how.machine and not how.suppose:
        return rows
    there = "only a load on such a machine tells: hfbench engine check ENGINE --load there"
    return tuple(replace(row, remedy=there) if row.remedy.startswith(TRY) else row for row in rows)


def _facts_of(manifest: Manifest) -> tuple[Fact, ...]:
    shapes, layout, source = manifest.shapes, manifest.layout, manifest.source
    prompt = (
        f"{shapes.min_prompt} to {shapes.max_prompt}" if shapes.min_prompt < shapes.max_prompt else shapes.max_prompt
    )
    return facts(
        model=source.given,
        revision=source.revision,
        built_for=_target(manifest),
        dtype=" ".join(each for each in (manifest.dtype, manifest.quantisation) if each != "none").strip(),
        shapes=f"batch {shapes.batch}, prompt {prompt}, context {shapes.context}",
        ranks=f"{layout.world_size}: TP {layout.tp}, PP {layout.pp}" if layout.world_size > 1 else "",
        signed_by=source.signed_by,
        licence=source.licence,
    )


def _target(manifest: Manifest) -> str:
    """`NVIDIA H100, 9.0`, or `cpu avx512`."""
    gpu = manifest.built_on.gpu
    if gpu is None:
        return f"cpu {manifest.built_on.isa_level}".strip()
    return ", ".join(filter(None, (gpu.name, gpu.compute_capability, gpu.mig)))


def _demands(found: Found) -> tuple[Fact, ...]:
    needs = f"{', '.join(found.needs[:6])}" + (f" and {len(found.needs) - 6} more" if len(found.needs) > 6 else "")
    return facts(libraries=needs, glibc=found.glibc and f"{found.glibc} or newer")


def _device(here: Machine, card: int) -> str:
    if card < len(here.gpus):
        gpu = here.gpus[card]
        return f"cuda:{card} {gpu.name}, compute capability {gpu.compute_capability}"
    return f"none: {here.gpu_reason}" if here.gpu_reason else f"cuda:{card}: this machine shows {len(here.gpus)}"


def _reasons_in(log: Path) -> tuple[Named, ...]:
    from hfbench.engines.trial.attempt import reasons_in

    if not log.is_file():
        raise UsageError("is no file", where=log, remedy="give the log of a runtime")
    return reasons_in(log)


def _tried(checked: Checked, how: How, seen: Machines, waiting: Callable[[float], None]) -> Checked:
    """The verdict after a trial load, which an engine that is refused already does not get."""
    from hfbench.engines.trial.attempt import attempt

    if checked.verdict == "will not load":
        wrong = counted(sum(row.status == "mismatch" for row in checked.rules), "rule")
        trial = Trial(outcome="could not", found=f"not tried, since it will not load by {wrong} above")
        return replace(checked, trial=trial)
    kind = "whole" if checked.manifest and checked.kind != "trtllm" else checked.kind
    trial = attempt(
        Path(checked.engine),
        kind,
        command=seen.command,
        size=checked.bytes,
        device="cpu" if checked.device == "cpu" else f"cuda:{seen.card}",
        patience=how.patience,
        waiting=waiting,
    )
    from hfbench.engines.trial.remembered import Trials

    with Trials() as trials:
        trials.keep(Path(checked.engine), trial, how.environment)
    return replace(checked, trial=trial, verdict=AFTER.get(trial.outcome, "cannot tell"))
