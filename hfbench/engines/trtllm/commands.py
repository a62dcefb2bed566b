"""The commands of a build: one that converts the checkpoint, one that builds the plans; and what replaces them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hfbench.engines.builders.base import Asked
from hfbench.engines.runtimes.cards import Cards
from hfbench.engines.runtimes.subject import ServedModel
from hfbench.engines.serving.asked import Wanted
from hfbench.engines.serving.compose import compose
from hfbench.engines.trtllm.environment import BUILD, Toolkit
from hfbench.engines.trtllm.flags import build_flags, tool_flags
from hfbench.engines.trtllm.recipe import Recipe, script_of
from hfbench.errors import UsageError

CHECKPOINT, ENGINE = "CHECKPOINT", "ENGINE"
"""What stands for the two folders in a command that is kept: they are gone, or renamed, when the build is done."""


@dataclass(frozen=True, kw_only=True)
class Commands:
    """The words of both commands, in the order they run."""

    convert: tuple[str, ...]
    build: tuple[str, ...]

    def told(self) -> tuple[str, str]:
        """Both as lines for a shell."""
        return shlex.join(self.convert), shlex.join(self.build)


def plan_commands(recipe: Recipe, model: ServedModel, toolkit: Toolkit, checkpoint: str, engine: str) -> Commands:
    """The commands for one recipe in one environment. MissingError when a program is not there."""
    convert = toolkit.script(script_of(recipe, model), recipe.examples)
    build = toolkit.program(BUILD)
    return Commands(
        convert=(*convert, *_converting(recipe, str(model.folder.absolute()), checkpoint)),
        build=(*build, *_building(recipe, checkpoint, engine)),
    )


def bare_commands(recipe: Recipe, model: ServedModel) -> Commands:
    """The same with bare names, for reading: nothing is looked for."""
    script = script_of(recipe, model)
    return Commands(
        convert=("python", f"EXAMPLES/{script}", *_converting(recipe, str(model.folder.absolute()), CHECKPOINT)),
        build=(BUILD, *_building(recipe, CHECKPOINT, ENGINE)),
    )


def refuse_newer(toolkit: Toolkit, model: ServedModel, asked: Asked, cards: Cards) -> None:
    """UsageError where the version has no plans any more, with the commands that take their place."""
    if toolkit.has_plans:
        return
    served = compose("trtllm", model, Wanted(tp=asked.tp, pp=asked.pp, max_len=asked.context), cards)
    raise UsageError(
        f"TensorRT-LLM {toolkit.version} builds no plans: the TensorRT backend was removed after {build_flags().last}",
        where=f"environment {toolkit.environment.name}",
        remedy=f"its PyTorch backend takes the model as it is. Serve it: {shlex.join(served.argv)}. "
        f"Measure it: {shlex.join(bench_command(model, asked))}. "
        f"For plans, declare an environment with TensorRT-LLM {build_flags().last}",
    )


def bench_command(model: ServedModel, asked: Asked) -> tuple[str, ...]:
    """trtllm-bench with the PyTorch backend; DATASET stands for the file that its prepare-dataset writes."""
    ranks = [
        word for flag, value in (("--tp", asked.tp), ("--pp", asked.pp)) if value > 1 for word in (flag, str(value))
    ]
    name = model.subject.location.repo or model.folder.name
    path = str(model.folder.absolute())
    words = ("trtllm-bench", "-m", name, "--model_path", path, "throughput", "--backend", "pytorch")
    return (*words, *ranks, "--dataset", "DATASET")


def _converting(recipe: Recipe, model: str, checkpoint: str) -> Iterator[str]:
    yield from ("--model_dir", model, "--output_dir", checkpoint, "--dtype", recipe.dtype)
    yield from ("--tp_size", str(recipe.tp), "--pp_size", str(recipe.pp))
    flags = tool_flags()[recipe.template.tool].flags
    for each in recipe.convert:
        yield from flags[each.flag].argv(each.value)


def _building(recipe: Recipe, checkpoint: str, engine: str) -> Iterator[str]:
    yield from ("--checkpoint_dir", checkpoint, "--output_dir", engine)
    flags = build_flags().flags
    for each in recipe.build:
        yield from flags[each.flag].argv(each.value)


def kept(words: tuple[str, ...], checkpoint: Path, engine: Path) -> tuple[str, ...]:
    """A command with its passing folders by their names."""
    names = {str(checkpoint): CHECKPOINT, str(engine): ENGINE}
    return tuple(names.get(word, word) for word in words)
