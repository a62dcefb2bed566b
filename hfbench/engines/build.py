"""Builds an engine: asked for, built beside its final name, proven against eager, described, and only then named."""

from __future__ import annotations

import importlib.util
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import hfbench
from hfbench.config import read_config
from hfbench.convert.stream.preflight import check_disk
from hfbench.engines.builders.base import Asked, Builder, Making, builder_of
from hfbench.engines.describe import describe, weight_bytes
from hfbench.engines.manifest import Manifest, Proof, fingerprint, write_manifest
from hfbench.engines.place import LOG, claimed, put, refuse_taken
from hfbench.engines.request import Request, asked_of
from hfbench.engines.running.open_engine import decoder_of, has_runner
from hfbench.errors import FULL, HfbenchError, MissingError
from hfbench.models.problem import counted
from hfbench.models.reference import Location, resolve
from hfbench.provenance import gate
from hfbench.provenance.facts import Provenance

if TYPE_CHECKING:
    from hfbench.gpu.generate_model import Loaded
    from hfbench.gpu.generate_open import Opened
    from hfbench.jobs.run import Run

FULL_IN_WORDS = ("No space left on device", "Disk quota exceeded", "problem writing element", "unexpected pos ")
"""Of Rust's libraries, which raise errors of their own, of numpy, whose error has no number, and of torch's writer of
packages, which only sees that it did not get as far as it wrote."""
TAIL = 8
"""Lines of the build log that go into the job when a build fails."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """An engine under its final name; `id` tells one engine from another."""

    folder: Path
    manifest: Manifest
    id: str


def build_engine(request: Request, folder: Path, run: Run, *, argv: tuple[str, ...] = ()) -> Finished:
    """Build, prove and describe an engine in a folder that appears when all of it is done.

    UsageError for shapes or places that cannot be, MissingError for a builder whose libraries are not installed,
    HfbenchError for a model without the signature or the licence asked for, one that cannot be built, and an engine
    that differs from eager: of it nothing is left but the log and the proof among the job's artifacts.
    """
    builder = builder_of(request.builder)
    _require(builder)
    asked = asked_of(request, builder)
    location = resolve(request.model)
    builder.refuse(asked, location)
    refuse_taken(folder, replace=request.replace)
    known = gate.require(location.folder, require_signature=request.require_signature, config=read_config(), run=run)
    with claimed(folder) as partial:
        check_disk(partial, builder.space(asked, weight_bytes(location, asked.dtype)))
        build = _Build(builder, asked, location, partial, run)
        try:
            manifest = build.described(known, argv)
            manifest = build.proven(manifest, keep=request.keep_unproven)
            write_manifest(partial, manifest)
        except BaseException as error:
            build.evidence()
            if is_full(error):
                raise HfbenchError(
                    "the disk was full before the engine was complete",
                    where=folder.parent,
                    remedy="free some space, or choose another folder with --out",
                ) from error
            raise
        refuse_taken(folder, replace=request.replace)  # a build takes minutes: somebody may have put files there
        put(partial, folder)
    return Finished(folder=folder, manifest=manifest, id=fingerprint(manifest))


@dataclass
class _Build:
    """One build: its model once it is loaded, and its log."""

    builder: Builder
    asked: Asked
    location: Location
    partial: Path
    run: Run
    opened: Opened | None = None
    loaded: Loaded | None = None
    lines: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def log(self, text: str) -> None:
        """Add to the build log, with the seconds since the build began."""
        for line in text.splitlines():
            stamped = f"{time.monotonic() - self.began:8.1f}  {line.rstrip()}"
            self.lines.append(stamped)
            with suppress(OSError), (self.partial / LOG).open("a", encoding="utf-8") as file:  # the disk may be full
                file.write(stamped + "\n")

    def load(self) -> Loaded:
        """The model in this process; its files are looked at before its weights are read."""
        if self.loaded is None:
            from hfbench.gpu.generate_open import open_model

            asked = self.asked
            self.opened = open_model(asked.model, asked.gpu, self.run, threads=asked.threads, with_text=False)
            self.opened.refuse_overlong(asked.context, f"{counted(asked.context, 'token')} of cache", remedy="context")
            self.loaded = self.opened.load(self.run, dtype=asked.dtype, attention=asked.attention)
            self.log(f"loaded {asked.model} as {self.loaded.dtype} on {self.loaded.device}")
        return self.loaded

    def described(self, known: Provenance, argv: tuple[str, ...]) -> Manifest:
        """Build the files, and the manifest of them without a proof."""
        asked = self.asked
        self.log(f"hfbench {hfbench.__version__}, builder {self.builder.name}, {asked.model}")
        self.log(f"batch {asked.batch}, prompts {asked.min_prompt} to {asked.max_prompt}, context {asked.context}")
        built = self.builder.build(Making(asked=asked, location=self.location, folder=self.partial, run=self.run,
                                          log=self.log, load=self.load))  # fmt: skip
        seconds = time.monotonic() - self.began
        self.log(f"built in {seconds:.1f} s")
        return describe(self.partial, asked, self.location, built, self.run, argv=argv, seconds=seconds, known=known)

    def proven(self, manifest: Manifest, *, keep: bool) -> Manifest:
        """The manifest with its proof; HfbenchError for an engine that differs, unless it is to be kept."""
        manifest = replace(manifest, proof=self._proof(manifest))
        write_manifest(self.partial, manifest)
        proof = manifest.proof
        if proof and proof.verdict == "differs" and not keep:
            raise HfbenchError(
                f"the engine differs from eager: {proof.why}",
                where=self.asked.model,
                remedy="read the log and the proof among the job's artifacts; --keep-unproven keeps such an engine",
            )
        return manifest

    def _proof(self, manifest: Manifest) -> Proof:
        from hfbench.engines.proof import prove

        if not has_runner(self.builder.name):
            return Proof(verdict="not run", why=f"engines of {self.builder.name} are not driven by hfbench")
        loaded = self.load()
        assert self.opened is not None
        engine = decoder_of(self.partial, manifest, gpu=self.asked.gpu, threads=self.asked.threads)
        for note in engine.notes:
            self.log(note)
        proof = prove(engine, loaded, self.opened.words, self.run)
        for case in proof.cases:
            self.log(
                f"proof at {case.batch} x {case.prompt} and {case.steps} steps: off by {case.max_abs:.2e},"
                f" {case.relative:.2e} of the largest logit; {case.argmax_agreement:.0%} of the likeliest tokens alike"
            )
        self.log(f"{proof.verdict}{': ' if proof.why else ''}{proof.why}")
        return proof

    def evidence(self) -> None:
        """Keep what a failed build leaves behind: its last lines in the job, log and proof among its artifacts."""
        for line in self.lines[-TAIL:]:
            self.run.log(line, level="warning")
        if self.run.directory is None:
            return
        from hfbench.engines.manifest import MANIFEST

        for name in (LOG, MANIFEST):
            try:
                kept = shutil.copy2(self.partial / name, self.run.artifacts / name)
            except OSError:  # it was not written yet, or the disk is full
                continue
            self.run.artifact(Path(kept), "of the build that failed")


def is_full(error: BaseException | None) -> bool:
    """Whether a full disk is at the root of an error, in whichever words a library has put it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if any(words in str(error) for words in FULL_IN_WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


def _require(builder: Builder) -> None:
    if missing := [name for name in builder.needs if importlib.util.find_spec(name) is None]:
        raise MissingError(
            f"builder {builder.name} needs {', '.join(missing)}, which this Python lacks",
            where="engine.build",
            remedy=f"install it with: pip install 'hfbench[{builder.extra}]'" if builder.extra else "",
        )
