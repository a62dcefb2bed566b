"""The verdict of each runtime: whether the model loads, as what, from which files, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hfbench.models.problem import counted
from hfbench.models.resolution.trace import Fate, Stage, Trace
from hfbench.models.runtimes import RUNTIMES, Runtime


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one runtime does with the model. `judged` says on how much of it: the configuration, or the weights too."""

    loads: bool
    config_class: str | None
    model_class: str | None
    reason: str
    files: tuple[str, ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...]
    version: str
    judged: str
    installed: bool
    unread: str = ""
    """The version that is installed, when its names could not be read and others were taken."""
    warning: str = ""
    """What is wrong though the model loads: it would not be built, or loading it is dangerous."""

    def told(self) -> dict[str, Any]:
        """As data for JSON, where `class` is the class of the configuration."""
        return {
            "loads": self.loads,
            "class": self.config_class,
            "model_class": self.model_class,
            "reason": self.reason,
            "files": list(self.files),
            "ignored": list(self.ignored),
            "notes": list(self.notes),
            "version": self.version,
            "judged": self.judged,
            "installed": self.installed,
            "unread": self.unread,
            "warning": self.warning,
        }


CONFIGURATION_ALONE = "; there are no weights, so the configuration alone is judged"


def verdicts(trace: Trace, *, config_only: bool) -> Mapping[Runtime, Verdict]:
    """The verdict of every runtime."""
    return {runtime: _verdict(runtime, trace.fates[runtime], config_only) for runtime in RUNTIMES}


def _verdict(runtime: Runtime, fate: Fate, config_only: bool) -> Verdict:
    """Of a folder without weights the configuration alone is judged; what would stop the model later is said."""
    stage = Stage.CONFIGURATION if config_only else Stage.WEIGHTS
    why_not = fate.blocked(stage)
    later = fate.blocked(Stage.WEIGHTS) if not why_not else ""
    return Verdict(
        loads=not why_not,
        config_class=fate.config_class,
        model_class=fate.model_class,
        reason=why_not or _why_it_loads(runtime, fate, config_only, later),
        files=tuple(fate.files),
        ignored=tuple(fate.ignored),
        notes=tuple(dict.fromkeys(fate.notes)),
        version=fate.names.version,
        judged="configuration" if config_only else "weights",
        installed=fate.names.installed,
        unread=fate.names.unread,
        warning=_warning(fate, later) if not why_not else "",
    )


def _warning(fate: Fate, later: str) -> str:
    if fate.alarm:
        return f"security: {fate.alarm}"
    return f"the model would not load: {later}" if later else ""


def _why_it_loads(runtime: Runtime, fate: Fate, config_only: bool, later: str) -> str:
    if runtime == "megatron_core":
        how = f"not read directly; Megatron-Bridge converts {fate.model_class}"
    elif runtime == "tensorrt_llm":
        how = f"its PyTorch backend has {fate.model_class}"
    else:
        how = f"{fate.config_class}" if later or not fate.model_class else f"{fate.config_class}, {fate.model_class}"
    if later:
        return f"{how}, but the model would not load: {later}"
    if config_only:
        return f"{how}{CONFIGURATION_ALONE}"
    alarm = f"; security: {fate.alarm}" if fate.alarm else ""
    return f"{how}, from {counted(len(fate.files), 'file')}{alarm}"
