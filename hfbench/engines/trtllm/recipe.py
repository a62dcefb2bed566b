"""One plan to be built: a template, under what the model's metadata says, under what the user set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hfbench.engines.builders.base import Asked
from hfbench.engines.runtimes.subject import ServedModel
from hfbench.engines.trtllm.flags import (
    NAMED_ELSEWHERE,
    FlagFault,
    FlagTable,
    Value,
    build_flags,
    conversion,
    tool_flags,
)
from hfbench.engines.trtllm.metadata import Named, read_metadata
from hfbench.engines.trtllm.template import Template, find_template
from hfbench.errors import UsageError
from hfbench.models.problem import quoted

DEFAULTS = {"float16": "dense-fp16"}
DEFAULT = "dense-bf16"
"""The template of a model whose metadata and user name none, by the dtype of its weights."""

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
CONVERT = "convert."
"""Begins a setting of the conversion."""
EXAMPLES = "examples"
"""The setting that names the folder of TensorRT-LLM's examples, where its conversions are."""
MODEL, USER, TEMPLATE, REQUEST = "model", "user", "template", "request"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One option with its value and who decided it: template, model, user, or the request itself."""

    flag: str
    value: Value
    origin: str


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A template with every option merged. `examples` is empty where the usual places are looked at."""

    template: Template
    chosen_by: str
    """Who named the template: user, model or default."""
    dtype: str
    tp: int
    pp: int
    convert: tuple[Setting, ...]
    build: tuple[Setting, ...]
    examples: str = ""

    @property
    def world(self) -> int:
        """Ranks, each on a GPU of its own."""
        return self.tp * self.pp

    def value(self, flag: str, default: Value | None = None) -> Value | None:
        """The value of a flag of trtllm-build: as merged, else its own default."""
        found = next((each.value for each in self.build if each.flag == flag), None)
        return found if found is not None else default if default is not None else build_flags().flags[flag].default

    def converts(self, flag: str) -> Value | None:
        """The value of a flag of the conversion, None where it is not given."""
        return next((each.value for each in self.convert if each.flag == flag), None)


def make_recipe(model: ServedModel, asked: Asked) -> Recipe:
    """Merge what there is, the user's last; UsageError names the first flag that is wrong, and who gave it."""
    named = read_metadata(model.subject)
    template, chosen_by = _template(model, asked, named)
    tool = tool_flags()[template.tool]
    build = {flag: Setting(flag=flag, value=value, origin=TEMPLATE) for flag, value in template.build.items()}
    convert = {flag: Setting(flag=flag, value=value, origin=TEMPLATE) for flag, value in template.convert.items()}
    for word, value in named.settings.items():
        _take(build, build_flags(), word, value, MODEL, named.source)
    examples = ""
    for word, value in settings_in(asked.settings):
        if word == EXAMPLES:
            examples = value
        elif word.startswith(CONVERT):
            _take(convert, tool, word.removeprefix(CONVERT), value, USER, "--set")
        else:
            _take(build, build_flags(), word, value, USER, "--set")
    for flag, number in (
        ("max_batch_size", asked.batch), ("max_input_len", asked.max_prompt), ("max_seq_len", asked.context),
    ):  # fmt: skip
        build[flag] = Setting(flag=flag, value=number, origin=REQUEST)
    return Recipe(
        template=template,
        chosen_by=chosen_by,
        dtype=DTYPES.get(asked.dtype, template.dtype),
        tp=asked.tp if asked.tp > 1 else template.tp,
        pp=asked.pp if asked.pp > 1 else template.pp,
        convert=tuple(convert.values()),
        build=tuple(build.values()),
        examples=examples,
    )


def settings_in(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of `flag=value`; UsageError for a word without a `=`, and for a flag that an option of hfbench sets."""
    for text in given:
        word, equals, value = text.partition("=")
        word = word.strip().removeprefix("--").replace("-", "_")
        if not equals or not word:
            raise UsageError(f"{quoted(text)} is no flag=value", where="--set", remedy="write it as gemm_plugin=auto")
        if word in NAMED_ELSEWHERE:
            raise UsageError(f"{word} is set from {NAMED_ELSEWHERE[word]}", where="--set", remedy="give that instead")
        yield word, value.strip()


def _template(model: ServedModel, asked: Asked, named: Named) -> tuple[Template, str]:
    if asked.template:
        return find_template(asked.template), USER
    if named.template:
        try:
            return find_template(named.template), MODEL
        except UsageError as error:
            remedy = error.remedy or "name one with --template"
            raise UsageError(error.found, where=named.source, remedy=remedy) from None
    dtype = DTYPES.get(asked.dtype, model.dtype)
    return find_template(DEFAULTS.get(dtype, DEFAULT)), "default"


def _take(into: dict[str, Setting], table: FlagTable, word: str, value: str, origin: str, where: str) -> None:
    try:
        flag, read = table.read(word, value)
    except FlagFault as fault:
        raise UsageError(fault.found, where=where, remedy=fault.remedy) from None
    into[flag.name] = Setting(flag=flag.name, value=read, origin=origin)


def script_of(recipe: Recipe, model: ServedModel) -> str:
    """The conversion below the folder of examples; UsageError for an architecture without one in the table."""
    tools: Mapping[str, Mapping[str, str]] = conversion()["tools"]
    own = recipe.template.script or tools[recipe.template.tool].get("script", "")
    if own:
        return own
    scripts: Mapping[str, str] = conversion()["scripts"]
    found = next((scripts[name] for name in model.architectures if name in scripts), None)
    if found is None:
        which = ", ".join(model.architectures[:2]) or "no architecture is named"
        raise UsageError(
            f"no conversion is known for {which}",
            where=recipe.template.name,
            remedy='name one in a template of your own: [convert] script = "models/..."',
        )
    return found
