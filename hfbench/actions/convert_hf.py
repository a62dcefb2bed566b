"""convert.hf: put a Megatron checkpoint together again as a Hugging Face folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.convert_text import ConversionResult
from hfbench.actions.params import param
from hfbench.paths import expand

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class ConvertHfResult(ConversionResult):
    """The plan of a conversion to Hugging Face, and what was written."""

    def lines(self) -> list[str]:
        """The plan as a table, and what became of it."""
        from hfbench.actions.convert_text import ending_lines, plan_lines

        return [*plan_lines(self.plan), *ending_lines(self)]


@action("convert.hf", result=ConvertHfResult, needs=("numpy",), extra="torch")
@dataclass(frozen=True, kw_only=True)
class ConvertHf:
    """Convert a Megatron checkpoint to a Hugging Face folder: weights cut to the vocabulary, config, index, tokenizer.

    Format, names and layout are read from the checkpoint. What ranks hold twice is compared before it is believed.
    """

    checkpoint: Path = param("Folder of the checkpoint, or of one iteration", kind="path", positional=True)
    out: Path = param("Folder to make; it appears when it is complete", kind="path")
    config: Path | None = param(
        "The model's config.json or its folder; default what was carried along, else built from the arguments",
        default=None,
        kind="path",
    )
    vocab_size: int | None = param("The true vocabulary, where the checkpoint does not tell it", default=None, ge=1)
    max_shard_size: str = param("Most bytes of tensors in one file, as in 5GB or 512MiB", default="5GB")
    dtype: Literal["keep", "bf16", "fp16", "fp32"] = param("What floating tensors become", default="keep")
    allow: tuple[str, ...] = param(
        "What a cast may meet, of nan, inf, overflow, underflow; refused otherwise", default=()
    )
    dry_run: bool = param("Show the plan, and write nothing", default=False)

    def perform(self, run: Run) -> ConvertHfResult:
        """Plan, and write unless it is a dry run."""
        from hfbench.actions.convert_text import conversion_fields
        from hfbench.convert.megatron.converting import to_hf
        from hfbench.convert.options import CASTS, allowed, shard_bytes
        from hfbench.convert.stream.prescan import KINDS

        allow = allowed(self.allow, KINDS)
        folder = expand(str(self.out)).absolute()
        found = to_hf(
            expand(str(self.checkpoint)),
            config=expand(str(self.config)) if self.config else None,
            vocab=self.vocab_size,
            dtype=CASTS[self.dtype],
            shard_bytes=shard_bytes(self.max_shard_size),
        )
        written = None
        if not self.dry_run:
            written = found.write(folder, run, allow=allow, action="convert.hf")
        return ConvertHfResult(**conversion_fields(found, folder, written))
