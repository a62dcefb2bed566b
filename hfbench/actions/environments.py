"""environments: the Pythons that actions can run in, and what each has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hfbench.actions.base import Spec, action
from hfbench.actions.params import param
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.environments import Environment, Probed
    from hfbench.jobs.run import Run

GAP = 2


@dataclass(frozen=True, kw_only=True)
class TorchBuild:
    """What the torch of an environment was built for."""

    version: str
    cuda: str
    """Empty for a build without CUDA."""
    hip: str
    arch_list: tuple[str, ...]
    """Compute capabilities it has kernels for: `sm_90`."""
    cxx11_abi: bool | None
    """Which C++ ABI an engine for it must have; None where torch could not be imported."""
    nccl: str
    cudnn: str


@dataclass(frozen=True, kw_only=True)
class KnownEnvironment:
    """One environment, and what it said of itself."""

    name: str
    command: tuple[str, ...]
    python: str
    """Its version; empty when it said nothing."""
    machine: str
    glibc: str
    versions: dict[str, str] = field(default_factory=dict)
    """Installed versions of what engines and actions depend on, by distribution."""
    torch: TorchBuild | None = None
    runs: tuple[str, ...] = ()
    """Actions that need packages, and find them there."""
    cannot_run: dict[str, str] = field(default_factory=dict)
    """The other ones, each with what it lacks."""
    trouble: str = ""

    def lines(self, width: int) -> list[str]:
        """Python, versions, what torch was built for, and what runs there."""
        head = f"{printable(self.name):<{width}}"
        command = printable(" ".join(self.command))
        if not self.python:
            return [head + cut(command, width), *_below(width, f"x {self.trouble}")]
        lines = [head + cut(f"Python {self.python}  {command}", width)]
        lines += _below(width, ", ".join(f"{name} {version}" for name, version in self.versions.items()))
        lines += _below(width, _built(self.torch) if self.torch else "")
        lines += _below(width, self._runs())
        return [*lines, *_below(width, f"x {self.trouble}" if self.trouble else "")]

    def _runs(self) -> str:
        """What runs there, and for the rest what is missing, told once for all actions that lack the same."""
        if not self.cannot_run:
            return f"runs every action, also the {len(self.runs)} that need packages"
        by_lack: dict[str, list[str]] = {}
        for name, lack in self.cannot_run.items():
            by_lack.setdefault(lack, []).append(name)
        cannot = "; ".join(f"{', '.join(names)} ({lack})" for lack, names in by_lack.items())
        return f"runs {', '.join(self.runs) or 'only what needs no package'}; not {cannot}"


@dataclass(frozen=True, kw_only=True)
class EnvironmentsResult:
    """This Python first, then those of the configuration in its order."""

    environments: tuple[KnownEnvironment, ...]
    config: str
    """Where environments are declared."""

    @property
    def failed(self) -> bool:
        """Whether one of them cannot be used, or not fully."""
        return any(each.trouble for each in self.environments)

    @property
    def headline(self) -> str:
        """`3 environments`, and those in trouble by name."""
        bad = [each.name for each in self.environments if each.trouble]
        return counted(len(self.environments), "environment") + (f", trouble with {', '.join(bad)}" if bad else "")

    def lines(self) -> list[str]:
        """A few lines an environment."""
        width = max(len(printable(each.name)) for each in self.environments) + GAP
        lines: list[str] = []
        for each in self.environments:
            lines += [*([""] if lines else []), *each.lines(width)]
        if len(self.environments) == 1:
            lines += ["", *paragraph(f"No other is declared. [environments.NAME] in {self.config} adds one")]
        return lines


@action("environments", result=EnvironmentsResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Environments:
    """List the Pythons that actions can run in: versions, what torch was built for, and what is wrong.

    Each is asked in a process of its own with a time limit. Answers are kept until the interpreter or its packages
    change.
    """

    again: bool = param("Ask each anew, whatever is remembered", default=False)

    def perform(self, run: Run) -> EnvironmentsResult:
        """Probe all at once."""
        from hfbench.actions.registry import actions
        from hfbench.environments import declared, here, probe_all
        from hfbench.paths import config_file

        asked = (here(), *declared())
        run.progress("asking", 0, len(asked))
        told = probe_all(asked, again=self.again)
        run.progress("asking", len(asked), len(asked))
        needing = [spec for spec in actions().values() if spec.needs]
        known = [_known(each, probed, needing) for each, probed in zip(asked, told, strict=True)]
        return EnvironmentsResult(environments=tuple(known), config=str(config_file()))


def _known(environment: Environment, told: Probed, needing: Iterable[Spec]) -> KnownEnvironment:
    from hfbench.environments.choose import unfit_for

    unfit = {spec.name: unfit_for(spec, told) for spec in needing}
    torch = told.torch
    return KnownEnvironment(
        name=environment.name,
        command=environment.command,
        python=told.python,
        machine=told.machine,
        glibc=told.glibc,
        versions=told.versions,
        torch=TorchBuild(**{name: getattr(torch, name) for name in TorchBuild.__annotations__}) if torch else None,
        runs=tuple(name for name, why in unfit.items() if not why),
        cannot_run={name: why for name, why in unfit.items() if why},
        trouble=told.trouble or (f"Python {told.python} is too old to run hfbench" if told.old else ""),
    )


def _built(torch: TorchBuild) -> str:
    """`torch for CUDA 12.8, sm_80 sm_90, C++11 ABI, NCCL 2.27.3`."""
    where = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "the CPU alone"
    abi = "" if torch.cxx11_abi is None else "C++11 ABI" if torch.cxx11_abi else "C++ ABI from before C++11"
    more = {"NCCL": torch.nccl, "cuDNN": torch.cudnn}
    parts = [f"torch for {where}", " ".join(torch.arch_list), abi, *_labelled(more)]
    return ", ".join(filter(None, parts))


def _labelled(values: Mapping[str, str]) -> Sequence[str]:
    return [f"{name} {value}" for name, value in values.items() if value]


def _below(width: int, text: str) -> list[str]:
    """A text in the column behind the names."""
    indent = " " * width
    return paragraph(printable(text), first=indent, later=indent) if text else []
