"""engine.machine: what engines depend on of this machine, as data that engine.check takes elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.engines.described import Described
from hfbench.line_width import paragraph
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 13
OWN_LINES = ("cpu", "isa", "isa_level", "platform", "machine", "gpu", "driver")
"""Facts that are not told as versions."""


@dataclass(frozen=True, kw_only=True)
class MachineResult(Described):
    """A machine, as a file of it holds it."""

    @property
    def headline(self) -> str:
        """`lab3: x86_64 avx512, 8 GPUs`."""
        machine = self.machine
        kind = " ".join(filter(None, (machine.versions.machine, machine.versions.isa_level)))
        return f"{printable(self.host)}: {kind}, {_cards(self)}"

    def lines(self) -> list[str]:
        """Processor, cards and versions, as wide as the terminal."""
        return [self.headline, *(line for label, text in _rows(self) for line in _labelled(label, text))]


@action("engine.machine", result=MachineResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class EngineMachine:
    """Tell what engines depend on of this machine; as JSON in a file, engine.check --machine takes it anywhere."""

    environment: str = param(
        "Python whose versions are told: a name of [environments], or a path; default the one of hfbench", default=""
    )

    def perform(self, run: Run) -> MachineResult:
        """Look; MissingError when the environment does not answer."""
        from hfbench.engines.described import describe_machine

        found = describe_machine(self.environment)
        return MachineResult(**{each.name: getattr(found, each.name) for each in fields(found)})


def _cards(told: Described) -> str:
    machine = told.machine
    names = list(dict.fromkeys(gpu.name for gpu in machine.gpus))
    if not machine.gpus:
        return f"no GPU ({machine.gpu_reason})" if machine.gpu_reason else "no GPU"
    return f"{len(machine.gpus)} x {', '.join(names)}"


def _rows(told: Described) -> Iterator[tuple[str, str]]:
    machine, versions = told.machine, told.machine.versions
    yield "processor", versions.cpu
    yield "features", " ".join(versions.isa)
    for number, gpu in enumerate(machine.gpus):
        more = [f"{gpu.sm_count} multiprocessors" if gpu.sm_count else "", gpu.mig]
        yield f"cuda:{number}", ", ".join(filter(None, (gpu.name, gpu.compute_capability, *more)))
    if versions.driver:
        yield "driver", f"{versions.driver}, for CUDA up to {machine.cuda_driver or 'no known version'}"
    of = f"environment {machine.environment}" if machine.environment else "versions"
    names = [each.name for each in fields(versions) if each.name not in OWN_LINES]
    yield of, ", ".join(f"{name} {getattr(versions, name)}" for name in names if getattr(versions, name))


def _labelled(label: str, text: str) -> list[str]:
    lead = f"{label:<{LABEL}}" if len(label) < LABEL else f"{label} "
    return paragraph(printable(text), first=lead, later=" " * LABEL) if text else []
