"""convert.megatron: divide a model of Hugging Face among the ranks of Megatron, by a plan that is shown first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.convert_text import ConversionResult
from hfbench.actions.params import param
from hfbench.convert.plan_table import Proposal
from hfbench.paths import expand

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class ConvertMegatronResult(ConversionResult):
    """The plan of a conversion to Megatron, and what was written."""

    format: str
    names: str
    tp: int
    pp: int
    ep: int
    launch_flags: tuple[str, ...]
    proposals: tuple[Proposal, ...]

    def lines(self) -> list[str]:
        """The plan as a table, the ranks, and what became of it."""
        from hfbench.actions.convert_text import megatron_lines

        return megatron_lines(self)


@action("convert.megatron", result=ConvertMegatronResult, needs=("numpy",), extra="torch")
@dataclass(frozen=True, kw_only=True)
class ConvertMegatron:
    """Convert a model to a Megatron checkpoint: every tensor planned first, then streamed to its ranks.

    Killed and started again, it goes on where it stopped. Nothing of a model's own code is executed.
    """

    model: str = param("Folder, repository in the cache, or GGUF file", kind="model", positional=True)
    out: Path = param("Folder to make; it appears when it is complete", kind="path")
    tp: int = param("Tensor-parallel ranks", default=1, ge=1, le=1024)
    pp: int = param("Pipeline stages", default=1, ge=1, le=1024)
    ep: int = param("Expert-parallel ranks", default=1, ge=1, le=4096)
    first_stage_layers: int | None = param("Layers of the first stage, where it is uneven", default=None, ge=1)
    last_stage_layers: int | None = param("Layers of the last stage, where it is uneven", default=None, ge=1)
    format: Literal["torch", "torch_dist"] = param(
        "One file a rank, or one set of files for every layout", default="torch"
    )
    names: Literal["te", "local"] = param("Names of Transformer Engine's modules, or of local ones", default="te")
    dtype: Literal["keep", "bf16", "fp16", "fp32"] = param("What floating tensors become", default="keep")
    allow: tuple[str, ...] = param(
        "What a cast or scales of fp8 may hold, of nan, inf, overflow, underflow; refused otherwise", default=()
    )
    vocab_divisible_by: int = param("The vocabulary is padded to a multiple of it times TP", default=128, ge=1)
    dry_run: bool = param("Show the plan, and write nothing", default=False)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> ConvertMegatronResult:
        """Plan, and write unless it is a dry run."""
        from hfbench.actions.convert_text import conversion_fields
        from hfbench.convert.megatron.converting import to_megatron
        from hfbench.convert.megatron.destination import Destination
        from hfbench.convert.megatron.parallel import Parallel
        from hfbench.convert.options import CASTS, allowed
        from hfbench.convert.stream.prescan import KINDS

        allow = allowed(self.allow, KINDS)
        folder = expand(str(self.out)).absolute()
        parallel = Parallel(
            tp=self.tp,
            pp=self.pp,
            ep=self.ep,
            first_stage_layers=self.first_stage_layers,
            last_stage_layers=self.last_stage_layers,
        )
        destination = Destination(parallel, self.format, self.names, CASTS[self.dtype], self.vocab_divisible_by)
        found = to_megatron(self.model, destination, cache_dir=self.cache_dir)
        written = None
        if not self.dry_run:
            written = found.write(folder, run, allow=allow, action="convert.megatron")
        return ConvertMegatronResult(
            **conversion_fields(found, folder, written),
            format=self.format,
            names=self.names,
            tp=self.tp,
            pp=self.pp,
            ep=self.ep,
            launch_flags=found.plan.launch_flags,
            proposals=found.proposals,
        )
