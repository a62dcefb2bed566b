"""One model as runtimes see it: architecture, heads, context, dtype, quantisation and whether its code would run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hfbench.engines.runtimes.precision import Scheme, scheme_of
from hfbench.estimate.settings import NotKnown, Settings
from hfbench.models.context import Context, context_of
from hfbench.models.reference import NotFound
from hfbench.models.resolution.quantization import Quantization, quantization_of
from hfbench.models.resolution.resolve import Resolution, trace_model
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.verdicts import Verdict
from hfbench.models.runtimes import Runtime

TEXT_PARTS = ("text_config", "llm_config", "language_config")
MOST_CODE = 3
"""Files of code that are named in a sentence."""


@dataclass(frozen=True)
class ServedModel:
    """A resolution with the folder behind it, and the figures that serving asks for; None or empty is not known."""

    resolution: Resolution
    subject: Subject

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self.subject.folder

    @property
    def given(self) -> str:
        """What means this model from any folder: a local one by its whole path."""
        location = self.subject.location
        return str(location.folder.absolute()) if location.source == "local" else location.given

    @property
    def name(self) -> str:
        """What a runtime is given: the repository with its cache, or the folder."""
        location = self.subject.location
        return location.repo or str(location.folder.absolute())

    @property
    def revision(self) -> str:
        """The commit of a cached repository, empty for a folder."""
        location = self.subject.location
        return (location.commit or "") if location.repo else ""

    @property
    def config(self) -> Mapping[str, Any]:
        """The root of config.json, empty without one."""
        return self.subject.config or {}

    @property
    def architectures(self) -> tuple[str, ...]:
        """The names in `architectures`, as many as are text."""
        told = self.config.get("architectures")
        return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list) else ()

    @cached_property
    def quantization(self) -> Quantization | None:
        """What tells of one."""
        return quantization_of(self.subject)

    @cached_property
    def scheme(self) -> Scheme | None:
        """The scheme its weights are packed in, where the table lists it."""
        return scheme_of(self.quantization)

    @cached_property
    def settings(self) -> Settings:
        """The language part of the configuration."""
        root = Settings(self.config)
        part = next((name for name in TEXT_PARTS if isinstance(self.config.get(name), dict)), None)
        return root.section(part) if part else root

    @property
    def heads(self) -> int | None:
        """Query heads."""
        return self._counted("heads")

    @property
    def kv_heads(self) -> int | None:
        """Key and value heads."""
        return self._counted("kv_heads")

    @property
    def layers(self) -> int | None:
        """Layers of the language model."""
        return self._counted("layers")

    @property
    def dtype(self) -> str:
        """The type the configuration names, `auto` where it names none."""
        for section in (self.config, *(self.config.get(part) for part in TEXT_PARTS)):
            for key in ("dtype", "torch_dtype"):
                value = section.get(key) if isinstance(section, dict) else None
                if isinstance(value, str):
                    return value.removeprefix("torch.")
        return "auto"

    def context(self, runtime: str) -> Context:
        """The longest context, as `vllm` or `transformers` derives it."""
        return context_of(self.config, runtime)

    def verdict(self, runtime: Runtime) -> Verdict:
        """What resolving says of one of its four runtimes."""
        return self.resolution.runtimes[runtime]

    @cached_property
    def code(self) -> str:
        """Which files would run under trust_remote_code; empty when there are none."""
        step = next((each for each in self.resolution.steps if each.step == "remote code"), None)
        files = [str(each) for each in step.details.get("files", ())] if step else []
        elsewhere = [str(each) for each in step.details.get("repositories", ())] if step else []
        named = [*files[:MOST_CODE], *(["..."] if len(files) > MOST_CODE else []), *elsewhere]
        return ", ".join(named)

    @property
    def needs_code(self) -> bool:
        """True when its configuration or its model class comes from the repository alone."""
        told = self.verdict("transformers").reason, self.verdict("vllm").reason
        return bool(self.code) and any("remote code" in each or "trust-remote-code" in each for each in told)

    def _counted(self, name: str) -> int | None:
        try:
            return int(getattr(self.settings, name))
        except NotKnown:
            return None


def read_served(reference: str, *, cache_dir: Path | None = None) -> ServedModel:
    """Read a model folder. NotFound when the reference leads nowhere or its folder cannot be listed."""
    resolution = trace_model(reference, cache_dir=cache_dir)
    if resolution.subject is None:
        reason = next(iter(resolution.runtimes.values())).reason
        raise NotFound(reason)
    return ServedModel(resolution, resolution.subject)
