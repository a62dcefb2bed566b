"""The manifest of an engine that was just built: its files, the machine, and the checkpoint with its hashes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import hfbench
from hfbench.engines.builders.base import Asked, Built
from hfbench.engines.files import describe_files
from hfbench.engines.machine import read_machine
from hfbench.engines.manifest import Compat, EngineFile, Layout, Manifest, ShapeProfile, Source
from hfbench.engines.place import LOG
from hfbench.models.inventory.digest_cache import DigestCache
from hfbench.models.inventory.inventory import hashed, take_inventory
from hfbench.models.reference import Location
from hfbench.provenance.facts import Provenance

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")


def weight_bytes(location: Location, dtype: str) -> int:
    """Most bytes the weights take in a dtype: files hold two bytes a value or more."""
    stored = sum(each.bytes for each in take_inventory(location).files if each.name.endswith(WEIGHTS))
    return 2 * stored if dtype == "fp32" else stored


def describe(
    partial: Path,
    asked: Asked,
    location: Location,
    built: Built,
    run: Run,
    *,
    argv: tuple[str, ...],
    seconds: float,
    known: Provenance,
) -> Manifest:
    """The manifest of what a builder left in a folder, without a proof; `argv` stands in for a program of its own."""
    files = [each for each in partial.rglob("*") if each.is_file()]
    for each in files:
        each.chmod((partial / LOG).stat().st_mode)  # safetensors writes files that nobody else may read
    names = [str(each.relative_to(partial)) for each in files]
    return Manifest(
        builder=asked.builder,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        hfbench=hfbench.__version__,
        files=describe_files(partial, [name for name in names if name != LOG]),
        built_on=read_machine(gpus=asked.gpu is not None, environment=built.environment).built_on(
            asked.gpu.index if asked.gpu else None
        ),
        layout=built.layout or Layout(),
        dtype=built.dtype,
        quantisation=built.quantisation,
        shapes=ShapeProfile(
            batch=asked.batch, min_prompt=asked.min_prompt, max_prompt=asked.max_prompt, context=asked.context
        ),
        argv=built.argv or argv,
        options={**_asked_options(asked), **built.options},
        source=_source(location, run, known),
        compat=built.compat or Compat(),
        log=LOG,
        seconds=round(seconds, 3),
    )


def _asked_options(asked: Asked) -> dict[str, str]:
    """What was asked for and no other field tells; plans have a template in its place."""
    return {} if asked.builder == "trtllm" else {"attention": asked.attention}


def _source(location: Location, run: Run, known: Provenance) -> Source:
    """The checkpoint with hashes of weights and configuration, remembered from earlier runs where it is unchanged."""
    files = take_inventory(location).files
    wanted = [each for each in files if each.name.endswith(WEIGHTS) or each.name == "config.json"]
    with DigestCache() as cache:
        told = list(
            hashed(
                wanted,
                location.folder,
                cache=cache,
                tell=lambda reading: run.progress("hash", reading.done, reading.total, "B"),
            )
        )
    sums = {each.name: each.sha256 or "" for each in told}
    return Source(
        given=location.given,
        folder=str(location.folder.absolute()),
        revision=location.commit or location.revision or "",
        config_sha256=sums.pop("config.json", ""),
        files=tuple(
            EngineFile(name=each.name, size=each.bytes, sha256=each.sha256)
            for each in told
            if each.name in sums and each.sha256
        ),
        signed_by=known.signed_by,
        licence=known.licence,
    )
