"""What a conversion will do, whole, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hfbench.convert.boxes import Copy, TensorSpec

Fill = Literal["", "zeros", "last row"]


@dataclass(frozen=True, slots=True)
class Target:
    """One tensor to write: where, from which elements of which sources, and in words how.

    `fill` says what rows hold that no copy writes: vocabulary padding, and nothing else.
    """

    spec: TensorSpec
    file: str
    copies: tuple[Copy, ...]
    transform: str
    fill: Fill = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the tensors it is made of, each once, in order."""
        return tuple(dict.fromkeys(each.source for each in self.copies))


@dataclass(frozen=True, slots=True)
class Dropped:
    """A source tensor that has no place in the target, and the reason."""

    source: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All targets in the order they are written, what is left out and why, and what goes beside the tensors."""

    family: str
    targets: tuple[Target, ...]
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()
    args: Mapping[str, Any]
    """Megatron's arguments (what its checkpoint's `args` hold), or the keys of config.json on the way back."""
    launch_flags: tuple[str, ...] = ()
    """What `--use-checkpoint-args` does not restore, as words of a command line."""
    twins: tuple[tuple[str, str], ...] = ()
    """Dropped source tensors that must hold the same bits as a used one: to be compared before anything is written."""
    stacked: Mapping[str, int] = field(default_factory=dict)
    """Leading dimensions of targets of torch_dist that count layers and experts: 1 or 2, by name."""
