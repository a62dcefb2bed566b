"""What a family is: rows that tie Megatron's tensors to those of Hugging Face, and the arguments that go with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hfbench.convert.families.transforms import Split, Transform
from hfbench.estimate.settings import Settings

Args = dict[str, Any]

LAYER = "decoder.layers.{n}."
"""How the rows of a layer begin on Megatron's side."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One tensor of Megatron, in Transformer Engine's spelling, and the tensors of Hugging Face it is made of.

    `{n}` stands for a layer and `{e}` for an expert. `shape` names sizes of the whole tensor, `split` how it is
    divided among tensor-parallel ranks. Several rows of one target are alternatives: the first whose sources are all
    there counts.
    """

    target: str
    sources: tuple[str, ...]
    transform: Transform
    shape: str
    split: Split = "whole"
    when: str = ""
    """Conditions that must all hold: `dense` or `moe` for the kind of layer, else an argument that must be set."""
    all_experts: bool = False
    """The sources hold all experts, one after another."""
    precise: bool = False
    """A cast leaves it in float32."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Names of sizes, one a dimension."""
        return tuple(self.shape.split())


@dataclass(frozen=True, slots=True)
class Drop:
    """Source tensors that have no place in Megatron: a pattern with `*` and `{n}`, and why."""

    pattern: str
    why: str
    same_as: str = ""
    """The tensor that they repeat."""
    restored: bool = False
    """The way back writes them again, once for each layer that predicts a further token."""

    @property
    def expression(self) -> re.Pattern[str]:
        """The pattern, `*` being anything and `{n}` a number."""
        return re.compile(re.escape(self.pattern).replace(r"\*", ".*").replace(r"\{n\}", r"(\d+)") + r"\Z")


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family, in both directions.

    `keys` ties arguments to keys of config.json, `fixed` are arguments that are the same for every model of it.
    `arguments` adds what has to be worked out; it raises UsageError for what Megatron cannot express. `config` is its
    way back.
    """

    name: str
    model_types: tuple[str, ...]
    architecture: str
    rows: tuple[Row, ...]
    drops: tuple[Drop, ...] = ()
    keys: tuple[tuple[str, str], ...]
    fixed: Mapping[str, Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Keys of config.json that are the same for every model, where it is built anew."""
    arguments: Callable[[Settings, Args], None] = lambda _settings, _args: None
    config: Callable[[Args, dict[str, Any]], None] = lambda _args, _config: None
    prefix: str = "model."
    """What base models, saved without their head, leave out of their names."""
    notes: tuple[str, ...] = ()
    told_by_arguments: bool = True
    """Whether `fixed` tells it from all others, in a checkpoint that names no family."""
    flags: tuple[str, ...] = ()
    """Words of the command line that every model of the family needs."""

    @cached_property
    def mixture(self) -> bool:
        """Whether its models have experts."""
        return any("moe" in row.when.split() for row in self.rows)

    @cached_property
    def by_target(self) -> dict[str, tuple[Row, ...]]:
        """The alternatives of each target, in the order of the rows."""
        found: dict[str, tuple[Row, ...]] = {}
        for row in self.rows:
            found[row.target] = (*found.get(row.target, ()), row)
        return found
