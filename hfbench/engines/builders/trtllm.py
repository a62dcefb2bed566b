"""The builder `trtllm`: plans of TensorRT-LLM up to 1.2.1, converted and built by its own programs elsewhere."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hfbench.engines.builders.base import Asked, Built, Making
from hfbench.engines.manifest import Layout
from hfbench.engines.runtimes.cards import Cards, cards_here
from hfbench.engines.runtimes.subject import ServedModel, read_served
from hfbench.engines.trtllm.build_log import BuildLog
from hfbench.engines.trtllm.commands import Commands, kept, plan_commands, refuse_newer
from hfbench.engines.trtllm.environment import Toolkit, find_toolkit, require_listed
from hfbench.engines.trtllm.programs import run_program
from hfbench.engines.trtllm.recipe import Recipe, make_recipe
from hfbench.engines.trtllm.rules import judge_plan
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.models.json_text import JsonError, read_object
from hfbench.models.problem import counted
from hfbench.models.reference import Location

SCRATCH = ".building"
"""Below the folder of the engine while it is built: the converted checkpoint and what programs leave about."""
CONFIG = "config.json"
LARGEST_CONFIG = 16 * 2**20
MOST_OPTIONS = 200


class TensorRtLlm:
    """Plans for this machine's GPUs; TensorRT-LLM stays in an environment of its own."""

    name = "trtllm"
    summary = "TensorRT-LLM plans from a template, by TensorRT-LLM 1.0 to 1.2.1 in another environment"
    needs: tuple[str, ...] = ()
    runs_with: tuple[str, ...] = ()
    extra = ""
    auto_dtype = "auto"

    def refuse(self, asked: Asked, location: Location) -> None:
        """All that is known to fail: no GPU, no such version, a wrong flag, options that exclude each other."""
        _prepared(asked, location)

    def space(self, asked: Asked, weight_bytes: int) -> int:
        """The converted checkpoint and the plans, each as large as the weights at most."""
        return 2 * weight_bytes

    def build(self, making: Making) -> Built:
        """Convert, build, and look whether every rank's plan is there."""
        recipe, model, toolkit = _prepared(making.asked, making.location, making.log)
        scratch = making.folder / SCRATCH
        scratch.mkdir()
        checkpoint = scratch / "checkpoint"
        commands = plan_commands(recipe, model, toolkit, str(checkpoint), str(making.folder))
        try:
            _run(commands, recipe, toolkit, making, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        _require_plans(making.folder, recipe.world)
        packed = recipe.template.quantisation or (model.scheme.name if model.scheme else "")
        return Built(
            dtype=recipe.dtype if recipe.dtype != "auto" else model.dtype,
            options=_options(recipe, commands, making.folder, checkpoint),
            argv=kept(commands.build, checkpoint, making.folder),
            quantisation=packed or "none",
            layout=Layout(world_size=recipe.world, tp=recipe.tp, pp=recipe.pp),
            environment=toolkit.probed,
        )


def _prepared(
    asked: Asked, location: Location, log: Callable[[str], None] | None = None
) -> tuple[Recipe, ServedModel, Toolkit]:
    """Recipe, model and environment, everything checked. UsageError or MissingError with the first fault."""
    toolkit = find_toolkit()
    model = read_served(str(location.folder))
    cards = _cards(asked, toolkit)
    refuse_newer(toolkit, model, asked, cards)
    require_listed(toolkit)
    recipe = make_recipe(model, asked)
    faults = judge_plan(recipe, model, cards)
    errors = [each for each in faults if each.severity == "error"]
    if errors:
        others = f" (and {counted(len(errors) - 1, 'other fault')})" if len(errors) > 1 else ""
        where = f"template {recipe.template.name}"
        raise UsageError(f"{errors[0].found}{others}", where=where, remedy=errors[0].remedy)
    if log is not None:
        for each in faults:
            log(f"warning: {each.found}{': ' if each.remedy else ''}{each.remedy}")
    plan_commands(recipe, model, toolkit, "CHECKPOINT", "ENGINE")  # programs and scripts are there
    return recipe, model, toolkit


def _cards(asked: Asked, toolkit: Toolkit) -> Cards:
    """The GPUs that plans would be for; behind a prefix they are not known. MissingError when there is none."""
    if not toolkit.is_local:
        return Cards()
    cards = cards_here()
    if asked.gpu is None:
        why = f" ({cards.why})" if cards.why else ""
        raise MissingError(
            f"a plan is built on the GPU it is for, and none is chosen{why}",
            where="engine.build",
            remedy="give --device cuda:0 on a machine with one, or build with --builder aoti",
        )
    return replace(cards, why="")


def _run(commands: Commands, recipe: Recipe, toolkit: Toolkit, making: Making, scratch: Path) -> None:
    watched = BuildLog(ranks=recipe.world)

    def tell(line: str) -> None:
        making.log(line)
        for phase, done in watched.read(line):
            making.run.progress(phase, done, watched.total)

    where = f"environment {toolkit.environment.name}"
    making.run.progress("convert", 0, watched.total)
    for words, what in ((commands.convert, recipe.template.tool), (commands.build, "trtllm-build")):
        making.log(f"$ {shlex.join(words)}")
        run_program(words, scratch, tell, what=what, where=where, reason=named_reason)
    if watched.peak_mib:
        making.run.metric("build_host_memory", watched.peak_mib * 2**20, "B")


def named_reason(lines: Sequence[str]) -> tuple[str, str] | None:
    """Why a program failed, by the table of reasons for trial loads; None for what it does not know."""
    from hfbench.engines.trial.reasons import named_reasons

    decisive = next((each for each in named_reasons("\n".join(lines)) if each.fatal), None)
    return (decisive.found, decisive.remedy) if decisive else None


def _require_plans(folder: Path, world: int) -> None:
    """HfbenchError when the program ended well and left something out."""
    wanted = [CONFIG, *(f"rank{rank}.engine" for rank in range(world))]
    lacking = [name for name in wanted if not (folder / name).is_file() or not (folder / name).stat().st_size]
    if lacking:
        found = f"trtllm-build ended well and did not write {', '.join(lacking[:3])}"
        raise HfbenchError(found, where=folder, remedy="read the build log")


def _options(recipe: Recipe, commands: Commands, folder: Path, checkpoint: Path) -> dict[str, str]:
    """What the build was told, by whom, and the plug-ins as TensorRT-LLM resolved them."""
    told = {"template": f"{recipe.template.name}, named by {recipe.chosen_by}"}
    told |= {f"convert.{each.flag}": f"{each.value} ({each.origin})" for each in recipe.convert}
    told |= {each.flag: f"{each.value} ({each.origin})" for each in recipe.build}
    told["convert"] = shlex.join(kept(commands.convert, checkpoint, folder))
    plugins = _resolved_plugins(folder)
    return told | {f"plugin_config.{name}": str(value) for name, value in list(plugins.items())[:MOST_OPTIONS]}


def _resolved_plugins(folder: Path) -> Mapping[str, Any]:
    try:
        told = read_object(folder / CONFIG, folder, LARGEST_CONFIG).value
    except JsonError as error:
        raise HfbenchError(error.found, where=folder / CONFIG, remedy="read the build log") from None
    config = told.get("build_config")
    plugins = config.get("plugin_config") if isinstance(config, dict) else None
    return plugins if isinstance(plugins, dict) else {}


BUILDER = TensorRtLlm()
