"""What is known of an engine on this machine: the verdict with every rule behind it."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.engines.compatibility.judge import Verdict
from hfbench.engines.compatibility.rule import Row
from hfbench.engines.reading.found import Fact
from hfbench.engines.trial.told import Named, Trial


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The verdict on one engine. Without a manifest, `facts` and `silent` say what its files tell and do not tell."""

    verdict: Verdict
    engine: str
    """The folder, or the file of an engine without one."""
    kind: str
    """Its builder, or `plan` for a TensorRT plan by itself."""
    what: str
    """In a few words."""
    manifest: bool
    id: str = ""
    """Fingerprint of the manifest."""
    recipe: str = ""
    """Fingerprint of what was asked for: every build of one recipe has it."""
    built: str = ""
    """When, and with which hfbench."""
    bytes: int = 0
    """Of its files."""
    device: str = ""
    """The GPU it would run on here, or `cpu`."""
    environment: str = ""
    python: str = ""
    """The Python that the verdict is about, or the machine that was described, and what was supposed."""
    proof: str = ""
    """Verdict of the comparison with eager, from the manifest."""
    rules: tuple[Row, ...] = ()
    facts: tuple[Fact, ...] = ()
    silent: tuple[str, ...] = ()
    trial: Trial | None = None
    reasons: tuple[Named, ...] = ()
    """Reasons found in a log that was given."""
