"""The two sides of a comparison: which of them is the reference, and how the other should lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from hfbench.convert.formats.megatron_folder import MegatronFacts, find_megatron
from hfbench.convert.formats.open import is_hugging_face, megatron_facts, open_tensors
from hfbench.convert.megatron.destination import Destination, Names
from hfbench.convert.megatron.parallel import Parallel
from hfbench.convert.megatron.plan import plan_megatron
from hfbench.convert.megatron.source import ModelSource, open_source
from hfbench.convert.plan import Plan
from hfbench.convert.stored import TensorSet
from hfbench.convert.walls.facts import require_args
from hfbench.convert.walls.megatron_args import MegatronArgs
from hfbench.convert.walls.memory import free_memory
from hfbench.convert.walls.weights import same_names
from hfbench.errors import HfbenchError, UsageError
from hfbench.units import show_bytes

TORCH = {"F32": "float32", "F64": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(frozen=True)
class Sides:
    """The Hugging Face folder that judges, and what was converted from it or to it.

    Where `MODEL` is the Megatron checkpoint and `CONVERTED` the Hugging Face folder, the two change places: whether
    they are the same is the same question.
    """

    reference: Path
    converted: Path
    megatron: bool
    swapped: bool = False

    @cached_property
    def _opened(self) -> ModelSource:
        return open_source(str(self.reference.absolute()))

    @property
    def config(self) -> Mapping[str, Any]:
        """The reference's config.json; UsageError when there is none."""
        return self._opened.config

    @cached_property
    def source(self) -> TensorSet:
        """The reference's tensors; for a Megatron checkpoint decoded to floats, as they were converted."""
        return self._opened.tensors if self.megatron else open_tensors(self.reference)

    @cached_property
    def target(self) -> TensorSet:
        """The other side's tensors."""
        return open_tensors(self.converted)

    @cached_property
    def facts(self) -> MegatronFacts:
        """What the Megatron checkpoint says of itself."""
        facts = megatron_facts(self.converted)
        require_args(facts.args)
        return facts

    @cached_property
    def plan(self) -> Plan:
        """How the other side should lie, made anew from the reference and the other's own layout."""
        if not self.megatron:
            return same_names(self.source, self.target, bool(self.config.get("tie_word_embeddings")))
        specs = {name: each.spec for name, each in self.source.tensors.items()}
        args, format = MegatronArgs(self.facts.args), self.facts.format
        parallel = _layout(args) if format == "torch" else Parallel()
        names = spec_of(list(self.target.tensors)) if format == "torch" else "te"

        def planned(dtype: str | None) -> Plan:
            destination = Destination(parallel, format, names, dtype, self._divisible_by(args, parallel.tp))
            return plan_megatron(self.config, specs, destination)

        plan = planned(None)
        mine, planned_as = self.dtype_of(self.target), self.dtype_of(self.source)
        return plan if mine == planned_as else planned(mine)

    def _divisible_by(self, args: MegatronArgs, tp: int) -> int:
        """What pads the vocabulary to the stored size. torch_dist is padded for the TP it was saved at."""
        padded = int(args.stored["padded_vocab_size"])
        return padded // tp if padded % tp == 0 else int(args.get("make_vocab_size_divisible_by", 128))

    @staticmethod
    def dtype_of(tensors: TensorSet) -> str:
        """The dtype of most elements."""
        elements: Counter[str] = Counter()
        for each in tensors.tensors.values():
            elements[each.spec.dtype] += prod(each.spec.shape)
        return elements.most_common(1)[0][0] if elements else "F32"

    def opening(self) -> dict[str, Any]:
        """The request that opens both models: the reference's weights as wide as stored, or as narrow as the cast."""
        if self.reference.is_file():
            remedy = "compare the weights alone: --walls weights"
            raise HfbenchError("a single file is no model that transformers runs", where=self.reference, remedy=remedy)
        stored, other = (self.dtype_of(each) for each in (self.source, self.target))
        narrow = other if other != stored and other in ("BF16", "F16") else self._floats(self.source)
        if narrow not in TORCH:
            remedy = "compare the weights alone: --walls weights"
            raise HfbenchError(f"weights of {narrow} are not run on a CPU", where=self.reference, remedy=remedy)
        self._refuse_too_large(4 if narrow in ("F32", "F64") else 2)
        return {
            "model": str(self.reference.absolute()),
            "dtype": TORCH[narrow],
            "rounded": narrow != stored and narrow == other,
            "converted": str(self.converted.absolute()),
            "megatron": self.megatron,
        }

    def _refuse_too_large(self, width: int) -> None:
        """HfbenchError when the reference does not fit into memory, with embedding and head in float32 beside it."""
        elements = [prod(each.spec.shape) for each in self.source.tensors.values()]
        needed, free = width * sum(elements) + 8 * max(elements, default=0), free_memory()
        if free is not None and needed > free:
            found = f"transformers would need {show_bytes(needed)} of memory, {show_bytes(free)} are free"
            remedy = "compare the weights alone, which needs none: --walls weights"
            raise HfbenchError(found, where=self.reference, remedy=remedy)

    def _floats(self, tensors: TensorSet) -> str:
        """The dtype that holds all floats of a set: the one there is, or float32 for several."""
        found = {
            each.spec.dtype for each in tensors.tensors.values() if each.spec.dtype in TORCH or "F" in each.spec.dtype
        }
        most = self.dtype_of(tensors)
        return most if len(found) == 1 or most not in TORCH else "F32"


def sides_of(model: Path, converted: Path) -> Sides:
    """Which is which. UsageError when both are Megatron checkpoints, or one of them is nothing."""
    for each, remedy in ((model, ""), (converted, "give the model first, then the folder that was converted")):
        if not each.exists():
            raise UsageError("there is no such file or folder", where=each, remedy=remedy)
    first, second = (is_megatron(each) for each in (model, converted))
    if first and second:
        remedy = "name the Hugging Face folder that one of them was made from or into"
        raise UsageError("both are Megatron checkpoints", where=converted, remedy=remedy)
    if first:
        return Sides(converted, model, megatron=True, swapped=True)
    return Sides(model, converted, megatron=second)


def is_megatron(folder: Path) -> bool:
    """Whether a folder is a Megatron checkpoint; a mirror of one inside a Hugging Face folder makes it none."""
    return folder.is_dir() and not is_hugging_face(folder) and find_megatron(folder) is not None


def _layout(args: MegatronArgs) -> Parallel:
    """The ranks that the arguments tell."""
    if args.pp == 1:
        return Parallel(tp=args.tp, ep=args.ep)
    first, last = (args.get(f"decoder_{end}_pipeline_num_layers") for end in ("first", "last"))
    return Parallel(tp=args.tp, pp=args.pp, ep=args.ep, first_stage_layers=first, last_stage_layers=last)


def spec_of(names: list[str]) -> Names:
    """Whose module names the tensors have: Transformer Engine's fused ones, or those of the local spec."""
    fused = any("layer_norm_" in name or "mlp.experts.linear_fc1.weight" in name for name in names)
    return "te" if fused else "local"
