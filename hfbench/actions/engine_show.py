"""engine.show: what an engine's manifest says, its proof, and the end of its build log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.engines.manifest import Manifest
from hfbench.errors import HfbenchError
from hfbench.line_width import cut, paragraph
from hfbench.text import printable, printable_lines
from hfbench.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 11
MOST_LOG = 2**20
"""Bytes read from the end of a build log."""


@dataclass(frozen=True, kw_only=True)
class ShowResult:
    """An engine by its manifest, None where it has none, and the end of its build log."""

    folder: str
    manifest: Manifest | None
    sealed: bool = False
    """Whether the manifest's fields are those that were written."""
    id: str = ""
    recipe: str = ""
    """Fingerprint of what was asked for: every build of one recipe has it."""
    log: tuple[str, ...] = ()
    log_trouble: str = ""
    """Why there is no log."""

    @property
    def headline(self) -> str:
        """`onnx engine of ./model, proven`."""
        manifest = self.manifest
        if manifest is None:
            return "no manifest: engine.check tells what its files say"
        proof = manifest.proof.verdict if manifest.proof else "not proven"
        return f"{manifest.builder} engine of {printable(manifest.source.given)}, {proof}"

    def lines(self) -> list[str]:
        """The manifest in short, and the log."""
        told = [cut(self.headline)]
        for label, text in _rows(self):
            first, *more = paragraph(printable(text), LABEL) or [""]
            told += [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in more)]
        log = [cut(line) for line in self.log] or paragraph(printable(self.log_trouble))
        return [*told, "", *log] if log else told


@action("engine.show", result=ShowResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class EngineShow:
    """Show the manifest of an engine, its proof and its build log; whether it loads here says engine.check."""

    engine: Path = param("Folder of an engine, or a file in it", kind="path", positional=True)
    log: int = param("Lines of the build log, from its end", default=20, ge=0, le=100_000)

    def perform(self, run: Run) -> ShowResult:
        """Read both. ManifestError for a manifest that is damaged; a log that cannot be read is told in a sentence."""
        from hfbench.engines.manifest import engine_folder, fingerprint, read_told, recipe_of

        if not os.path.lexists(self.engine):
            raise HfbenchError("is not there", where=self.engine, remedy="give the path of an engine")
        folder = engine_folder(self.engine)
        if folder is None:
            return ShowResult(folder=str(self.engine), manifest=None, log_trouble="without a manifest there is no log")
        told = read_told(folder)
        log, trouble = _log_of(folder, told.manifest.log, self.log)
        return ShowResult(
            folder=str(folder),
            manifest=told.manifest,
            sealed=told.sealed,
            id=fingerprint(told.manifest),
            recipe=recipe_of(told.manifest),
            log=log,
            log_trouble=trouble,
        )


def _log_of(folder: Path, name: str, lines: int) -> tuple[tuple[str, ...], str]:
    """The last lines of a log, or why there are none."""
    if not name:
        return (), "the manifest names no build log"
    if os.path.basename(name) != name:
        return (), "the manifest names a build log outside the engine's folder"
    try:
        with open(os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a pipe would hold us
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_LOG))
            text = file.read(MOST_LOG).decode("utf-8", "replace")
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
        return (), f"{name} cannot be read: {reason or 'it is no plain file'}"
    kept = tuple(printable_lines(text)[-lines:] if lines else ())
    return kept, "" if kept or not lines else f"{name} is empty"


def _rows(result: ShowResult) -> Iterator[tuple[str, str]]:
    manifest = result.manifest
    yield "engine", result.folder
    if manifest is None:
        return
    built, shapes, source = manifest.built_on, manifest.shapes, manifest.source
    yield "built", f"{manifest.created} by hfbench {manifest.hfbench}, in {show_seconds(manifest.seconds)}"
    versions = ("python", "torch", "cuda", "tensorrt", "tensorrt_llm", "onnxruntime", "openvino", "transformers")
    yield "with", ", ".join(f"{name} {getattr(built, name)}" for name in versions if getattr(built, name))
    yield "on", f"{built.gpu.name}, {built.gpu.compute_capability}" if built.gpu else f"{built.cpu} {built.isa_level}"
    prompts = f"prompts {shapes.min_prompt} to {shapes.max_prompt}"
    yield "for", f"{manifest.dtype}, batch {shapes.batch}, {prompts}, context {shapes.context}"
    yield "files", ", ".join(f"{each.name} {show_bytes(each.size)}" for each in manifest.files)
    yield "model", f"{source.folder or source.given} {source.revision}".strip()
    for label, text in (("licence", source.licence), ("signed", source.signed_by)):
        if text:
            yield label, text
    yield "id", result.id + ("" if result.sealed else ", edited since it was built")
    yield "recipe", result.recipe
    if manifest.proof is None:
        return
    for case in manifest.proof.cases:
        alike = f"{case.argmax_agreement:.0%} alike, greedy {'the same' if case.greedy_equal else 'other tokens'}"
        yield "proof", f"{case.batch} x {case.prompt}: off by {case.relative:.1e} of the largest logit, {alike}"
    if manifest.proof.why:
        yield "proof", f"{manifest.proof.verdict}: {manifest.proof.why}"
