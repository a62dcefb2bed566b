"""engine.check: whether an engine will load on this machine, told before a runtime gets the chance to crash."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.engines.checked import Checked

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

EXITS = {"loads here": 0, "will not load": 1}
"""Any other verdict is 2: it could not be told."""


@dataclass(frozen=True, kw_only=True)
class CheckResult(Checked):
    """The verdict on an engine, with every rule behind it."""

    @property
    def failed(self) -> bool:
        """True unless the engine loads here."""
        return self.verdict != "loads here"

    @property
    def exit(self) -> int:
        """0 loads here, 1 will not load, 2 could not be told."""
        return EXITS.get(self.verdict, 2)

    @property
    def headline(self) -> str:
        """`will not load: compute-capability, torch`, or the verdict alone."""
        decisive = {"will not load": "mismatch", "cannot tell": "unknown"}.get(self.verdict, "")
        named = list(dict.fromkeys(row.id for row in self.rules if row.status == decisive))
        tried = self.trial is not None and self.trial.outcome not in ("loaded", "could not")
        named += [f"trial {self.trial.outcome}"] if tried and self.trial else []
        return f"{self.verdict}: {', '.join(named)}" if named else self.verdict

    def lines(self) -> list[str]:
        """The verdict, what the engine is, and what each rule found, as wide as the terminal."""
        from hfbench.actions.engine_text import check_lines

        return check_lines(self)


@action("engine.check", result=CheckResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class EngineCheck:
    """Tell whether an engine will load here, by every field of its manifest, and on request by loading it.

    Engines without a manifest are told as far as their files go: AOTInductor packages, TensorRT-LLM folders and plans,
    ONNX and OpenVINO models, packed caches of torch.compile.
    """

    engine: Path = param("Folder of an engine, or a file of one without a manifest", kind="path", positional=True)
    load: bool = param(
        "Load it too, in a process of its own that may crash; this runs the engine's native code", default=False
    )
    environment: str = param(
        "Python it is to run in: a name of [environments], or a path; default the one of hfbench", default=""
    )
    machine: Path | None = param(
        "File that describes another machine, as hfbench engine machine --json tells it", default=None, kind="path"
    )
    suppose: tuple[str, ...] = param(
        "Facts in place of the machine's own, each name=value: torch=2.9.1, driver=550.54.14", default=()
    )
    device: str = param("GPU of an engine for GPUs", default="auto", kind="device")
    hash: bool = param("Hash files whose hashes are not remembered; else sizes must do", default=True)
    patience: float = param("Most time for loading", default=300.0, ge=1, unit="s", kind="duration")
    log: Path | None = param("Log of a runtime, whose messages are named", default=None, kind="path")

    def perform(self, run: Run) -> CheckResult:
        """Compare and, with `load`, try; an HfbenchError for what is no engine."""
        from hfbench.engines.check import How, check_engine

        how = How(
            hashing=self.hash,
            load=self.load,
            environment=self.environment,
            device=self.device,
            machine=self.machine,
            suppose=self.suppose,
            patience=self.patience,
            log=self.log,
        )
        checked = check_engine(
            self.engine,
            how,
            progress=lambda done, total: run.progress("sha256", done, total, "B"),
            waiting=lambda seconds: run.progress("load", seconds, None, "s"),
        )
        return CheckResult(**{each.name: getattr(checked, each.name) for each in fields(checked)})
