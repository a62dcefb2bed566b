"""engine.templates: the recipes for TensorRT-LLM plans there are, and what is wrong with the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 22


@dataclass(frozen=True, kw_only=True)
class TemplateRow:
    """One template that can be used."""

    name: str
    title: str
    summary: str
    quantisation: str
    dtype: str
    tp: int
    pp: int
    file: str


@dataclass(frozen=True, kw_only=True)
class EngineTemplatesResult:
    """Templates by name, and a sentence for each file that is none; `failed` when there is such a file."""

    templates: tuple[TemplateRow, ...]
    failures: tuple[str, ...]
    folder: str
    """Where a user's own are looked for."""
    failed: bool

    @property
    def headline(self) -> str:
        """How many there are."""
        wrong = f", {counted(len(self.failures), 'file')} wrong" if self.failures else ""
        return f"{counted(len(self.templates), 'template')}{wrong}"

    def lines(self) -> list[str]:
        """A template a paragraph, then the files that are none."""
        told = [self.headline, ""]
        for each in self.templates:
            for number, line in enumerate(paragraph(f"{each.title}. {each.summary}", LABEL)):
                told.append(f"{' ' * LABEL if number else f'{each.name:<{LABEL}}'}{line}".rstrip())
        told += [line for sentence in self.failures for line in paragraph(f"x {sentence}", 0, later="  ")]
        return [*told, "", cut(f"your own: {self.folder}")]


@action("engine.templates", result=EngineTemplatesResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class EngineTemplates:
    """List the templates for TensorRT-LLM plans, shipped ones and your own."""

    folder: Path | None = param(
        "Folder of templates; default templates beside the configuration", default=None, kind="path"
    )

    def perform(self, run: Run) -> EngineTemplatesResult:
        """Read them all; a file that is no template is told, not raised. UsageError for a folder that is none."""
        from hfbench.engines.trtllm.template import FOLDER, load_templates
        from hfbench.paths import config_root

        if self.folder and not self.folder.is_dir():
            raise UsageError("is no folder", where=self.folder, remedy="give the folder that your templates lie in")
        folder = self.folder or config_root() / FOLDER
        found = load_templates(folder)
        rows = tuple(
            TemplateRow(
                name=each.name,
                title=each.title,
                summary=each.summary,
                quantisation=each.quantisation,
                dtype=each.dtype,
                tp=each.tp,
                pp=each.pp,
                file=each.file,
            )
            for each in found.loaded.values()
        )
        failures = tuple(map(str, found.failed))
        return EngineTemplatesResult(templates=rows, failures=failures, folder=str(folder), failed=bool(failures))
