"""engine.recipe: what a plan of a model would be built with, checked, without building it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import cut, paragraph

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 30
SIGNS = {"error": "x", "warning": "!"}


@dataclass(frozen=True, kw_only=True)
class RecipeSetting:
    """One option and who decided it: template, model, user or request."""

    flag: str
    value: str
    origin: str


@dataclass(frozen=True, kw_only=True)
class RecipeFault:
    """One thing that is wrong, or worth knowing."""

    rule: str
    severity: str
    found: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class EngineRecipeResult:
    """Options with their origins, both commands with names for their folders; `failed` when a rule is broken."""

    model: str
    template: str
    chosen_by: str
    dtype: str
    tp: int
    pp: int
    convert: tuple[RecipeSetting, ...]
    build: tuple[RecipeSetting, ...]
    faults: tuple[RecipeFault, ...]
    convert_command: str
    build_command: str
    failed: bool

    @property
    def headline(self) -> str:
        """The template, or the first fault."""
        wrong = next((each.found for each in self.faults if each.severity == "error"), "")
        return wrong or f"template {self.template}, named by {self.chosen_by}"

    def lines(self) -> list[str]:
        """Options, faults, and the commands, which are not wrapped."""
        head = f"template {self.template}, named by {self.chosen_by}; {self.dtype}, tp {self.tp}, pp {self.pp}"
        told = [cut(self.model), *paragraph(head, 0), ""]
        told += [cut(line) for line in _settings("convert.", self.convert)]
        told += [cut(line) for line in _settings("", self.build)]
        for each in self.faults:
            sentence = f"{SIGNS[each.severity]} {each.found}" + (f": {each.remedy}" if each.remedy else "")
            told += ["", *paragraph(sentence, 0, later="  ")]
        return [*told, "", self.convert_command, self.build_command]


@action("engine.recipe", result=EngineRecipeResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class EngineRecipe:
    """Show what a TensorRT-LLM plan of a model would be built with, and check every flag."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    template: str = param("Name or file of a template; default the model's own wish, else by dtype", default="")
    set: tuple[str, ...] = param("Options of trtllm-build, each flag=value", default=())
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = param("Weights as; auto keeps the template's", default="auto")
    batch: int = param("Most sequences of a call", default=1, ge=1, le=4096)
    max_prompt: int = param("Longest prompt", default=128, ge=1, unit="token")
    context: int = param("Longest sequence", default=256, ge=2, unit="token")
    tp: int = param("Tensor-parallel ranks", default=1, ge=1, le=1024)
    pp: int = param("Pipeline stages", default=1, ge=1, le=1024)
    gpu: str | None = param("GPU by name; default none is compared with", default=None)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> EngineRecipeResult:
        """Merge and judge. UsageError for a flag that is wrong, NotFound when there is no model."""
        from hfbench.engines.builders.base import Asked
        from hfbench.engines.runtimes.cards import Cards, cards_named
        from hfbench.engines.runtimes.subject import read_served
        from hfbench.engines.trtllm.commands import bare_commands
        from hfbench.engines.trtllm.recipe import make_recipe
        from hfbench.engines.trtllm.rules import judge_plan

        model = read_served(self.model, cache_dir=self.cache_dir)
        asked = Asked(
            model=self.model,
            builder="trtllm",
            batch=self.batch,
            min_prompt=1,
            max_prompt=self.max_prompt,
            context=self.context,
            dtype=self.dtype,
            gpu=None,
            template=self.template,
            tp=self.tp,
            pp=self.pp,
            settings=self.set,
        )
        recipe = make_recipe(model, asked)
        faults = judge_plan(recipe, model, cards_named(self.gpu) if self.gpu else Cards())
        convert, build = bare_commands(recipe, model).told()
        return EngineRecipeResult(
            model=model.resolution.model,
            template=recipe.template.name,
            chosen_by=recipe.chosen_by,
            dtype=recipe.dtype,
            tp=recipe.tp,
            pp=recipe.pp,
            convert=tuple(RecipeSetting(flag=s.flag, value=str(s.value), origin=s.origin) for s in recipe.convert),
            build=tuple(RecipeSetting(flag=s.flag, value=str(s.value), origin=s.origin) for s in recipe.build),
            faults=tuple(
                RecipeFault(rule=each.rule, severity=each.severity, found=each.found, remedy=each.remedy)
                for each in faults
            ),
            convert_command=convert,
            build_command=build,
            failed=any(each.severity == "error" for each in faults),
        )


def _settings(prefix: str, settings: tuple[RecipeSetting, ...]) -> Iterator[str]:
    for each in settings:
        yield f"{prefix + each.flag:<{LABEL}}{each.value}  ({each.origin})"
