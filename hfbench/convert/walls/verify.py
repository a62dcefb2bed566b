"""Proves a conversion, or shows where it is wrong: the three walls one after the other, and a report of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from hfbench.convert.families.registry import families
from hfbench.convert.walls.asking import Judging
from hfbench.convert.walls.core import python_of
from hfbench.convert.walls.facts import not_stated, wrong_facts
from hfbench.convert.walls.forward import forward_wall
from hfbench.convert.walls.results import ForwardWall, TaskWall, Verdict, Walls, WeightsWall
from hfbench.convert.walls.sides import Sides, sides_of
from hfbench.convert.walls.task import Asked, task_wall
from hfbench.convert.walls.weights import weights_wall
from hfbench.convert.walls.words import forward_words, task_words, weights_words
from hfbench.errors import HfbenchError, Interrupted, MissingError
from hfbench.jobs.run import Run
from hfbench.models.reference import NotCached, resolve
from hfbench.paths import expand

W = TypeVar("W", WeightsWall, ForwardWall, TaskWall)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What was compared, how it lay, and what each wall found."""

    reference: str
    converted: str
    format: str
    """`torch` or `torch_dist` of Megatron, or `hf`."""
    layout: str
    """`TP 2, PP 2` of files by rank."""
    family: str
    """Of what was converted, and of the reference where that is another one."""
    notes: tuple[str, ...]
    dropped: tuple[str, ...]
    walls: Walls
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """Of all walls together."""
        return self.walls.verdict


def prove(
    model: str, converted: Path, run: Run, *, walls: Collection[str], environment: str = "", asked: Asked | None = None
) -> Proof:
    """Compare a model with what was converted from it, or into it.

    UsageError for what is no such thing, MissingError when the walls asked for need a package that is not here. A wall
    that cannot be judged for another reason says so and leaves the others to be looked at.
    """
    began = time.perf_counter()
    path = expand(model)
    single = path.suffix == ".gguf" and path.is_file()
    sides = sides_of(path if single else resolve(model).folder, _converted(str(converted)))
    if {"forward", "task"} & set(walls):
        require_torch()
    python = python_of(environment) if environment else None
    weights, forward, task = WeightsWall(), ForwardWall(), TaskWall()
    if "weights" in walls:
        weights = judged(WeightsWall(), lambda: first_wall(sides, run))
        run.log(f"weights: {weights.verdict}: {weights_words(weights)}")
    with Judging(run) as judging:
        if "forward" in walls:
            judging.wall = "forward"
            forward = judged(ForwardWall(), lambda: forward_wall(judging, sides, run, python), weights)
            run.log(f"forward: {forward.verdict}: {forward_words(forward)}")
        if "task" in walls:
            judging.wall = "task"
            task = judged(TaskWall(), lambda: task_wall(judging, sides, asked or Asked()), weights)
            run.log(f"task: {task.verdict}: {task_words(task)}")
    return Proof(
        reference=str(sides.reference),
        converted=str(sides.converted),
        walls=Walls(weights=weights, forward=forward, task=task),
        seconds=time.perf_counter() - began,
        **facts_of(sides),
    )


def _converted(text: str) -> Path:
    """A path, else a repository in the cache; a path again where there is neither, to be told with the other side."""
    path = expand(text)
    if path.exists():
        return path
    try:
        return resolve(text).folder
    except NotCached:
        raise
    except HfbenchError:
        return path


def require_torch() -> None:
    """MissingError when the packages that run models are not installed; nothing of them is imported here."""
    lacking = [name for name in ("torch", "transformers", "safetensors") if find_spec(name) is None]
    if lacking:
        remedy = "install them with: pip install 'hfbench[torch]', or ask for --walls weights"
        raise MissingError(f"needs {', '.join(lacking)}, which this Python lacks", where="verify", remedy=remedy)


def first_wall(sides: Sides, run: Run) -> WeightsWall:
    """The weights by their plan, and the arguments by config.json."""
    found = weights_wall(sides.plan, sides.source, sides.target, run)
    if not sides.megatron:
        return found
    facts = wrong_facts(sides.facts.args, sides.config, sides.source.tensors)
    verdict = "differs" if facts else found.verdict
    return replace(found, verdict=verdict, facts=facts, not_stated=not_stated(sides.facts.args))


def judged(wall: W, judge: Callable[[], W], weights: WeightsWall | None = None) -> W:
    """What a wall found, or the reason why it could not be judged: arguments that `weights` found wrong come first."""
    try:
        return judge()
    except (Interrupted, MissingError):
        raise
    except HfbenchError as error:
        misfit = "the arguments are not those of the model, see weights; " if weights and weights.facts else ""
        return replace(wall, verdict="could not", reason=f"{misfit}{error}")


def facts_of(sides: Sides) -> dict[str, Any]:
    """Format, layout and plan of the other side, as far as they can be told."""
    told: dict[str, Any] = {"format": "hf", "layout": "", "family": "", "notes": (), "dropped": ()}
    try:
        if sides.megatron:
            args = sides.facts.args
            degrees = [("TP", "tensor"), ("PP", "pipeline"), ("EP", "expert")]
            stated = [f"{name} {args.get(f'{kind}_model_parallel_size') or 1}" for name, kind in degrees]
            told |= {"format": sides.facts.format, "layout": ", ".join(stated)}
        plan = sides.plan
        dropped = tuple(f"{each.source}: {each.why}" for each in plan.dropped)
        told |= {"family": _families(sides, plan.family), "notes": plan.notes, "dropped": dropped}
    except HfbenchError:
        pass  # the weights wall says why there is no plan
    return told


def _families(sides: Sides, planned: str) -> str:
    """The family that the converted side names, beside that of the reference where the two differ."""
    if not sides.megatron:
        return planned
    named = sides.facts.args.get("hf_model_type")
    by_type = {model_type: family.name for family in families().values() for model_type in family.model_types}
    own = by_type.get(named, named) if isinstance(named, str) else planned
    return planned if own == planned else f"{own} by its arguments, {planned} by the reference"
