"""A manifest as lines to read: what it was built with, from and for, and its files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from hfbench.units import show_bytes, show_seconds
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import Glyphs

if TYPE_CHECKING:
    from hfbench.engines.manifest import BuiltOn, Manifest

TELLING = 16
"""Digits of a hash that tell it from any other a reader will meet; the file has all."""


def manifest_lines(manifest: Manifest, *, sealed: bool, width: int, glyphs: Glyphs) -> list[list[Span]]:
    """Every field of a manifest that holds something, in sections; its proof is told elsewhere."""
    sections = {
        "": _head(manifest, sealed=sealed),
        "built on": _built_on(manifest.built_on),
        "from": _source(manifest),
        "options": (Fact(name, value) for name, value in manifest.options.items()),
        "files": (Fact(each.name, f"{show_bytes(each.size)}  {each.sha256[:TELLING]}") for each in manifest.files),
    }
    lines: list[list[Span]] = []
    for title, section in sections.items():
        facts = [fact for fact in section if fact.value]
        if facts:
            lines += [[], [(title, "title")]] if title else []
            lines += facts_lines(facts, width, glyphs)
    return lines


def _head(manifest: Manifest, *, sealed: bool) -> Iterator[Fact]:
    shapes, layout, compat = manifest.shapes, manifest.layout, manifest.compat
    yield Fact("builder", manifest.builder)
    yield Fact("created", f"{manifest.created} by hfbench {manifest.hfbench}")
    yield Fact("took", show_seconds(manifest.seconds))
    yield Fact("dtype", manifest.dtype)
    yield Fact("quantisation", manifest.quantisation)
    yield Fact("batch", f"{shapes.batch:,}")
    yield Fact("prompt", f"{shapes.min_prompt:,} to {shapes.max_prompt:,} tokens")
    yield Fact("context", f"{shapes.context:,} tokens, prompt and new ones together")
    if layout.world_size > 1:
        yield Fact("ranks", f"{layout.world_size}: TP {layout.tp}, PP {layout.pp}")
    yield Fact("command", shlex.join(manifest.argv))
    yield Fact("tolerates", "later versions of TensorRT" if compat.version_compatible else "")
    yield Fact("hardware level", compat.hardware_level)
    yield Fact("serialization", compat.serialization)
    edited = "" if sealed else "some field is not as it was written: the manifest was edited"
    yield Fact("seal", edited or f"as it was written ({manifest.seal[:TELLING]})", "error" if edited else "")


def _built_on(built: BuiltOn) -> Iterator[Fact]:
    for field in fields(built):
        value = getattr(built, field.name)
        if field.name == "gpu":
            if value is not None:
                parts = (value.name, f"compute capability {value.compute_capability}", value.mig)
                size = (f"{value.sm_count} SMs" if value.sm_count else "", show_bytes(value.memory))
                yield Fact("gpu", ", ".join(filter(None, (*parts, *size))))
        elif field.name == "isa":
            yield Fact("isa", " ".join(value), "muted")
        else:
            yield Fact(field.name.replace("_", " "), value)


def _source(manifest: Manifest) -> Iterator[Fact]:
    source = manifest.source
    yield Fact("model", source.given)
    yield Fact("folder", source.folder)
    yield Fact("revision", source.revision)
    yield Fact("config", source.config_sha256[:TELLING])
    for each in source.files:
        yield Fact(each.name, f"{show_bytes(each.size)}  {each.sha256[:TELLING]}")
    yield Fact("signed by", source.signed_by)
    yield Fact("licence", source.licence)
