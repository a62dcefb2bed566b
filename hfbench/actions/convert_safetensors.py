"""convert.safetensors: write a model again as safetensors: from .bin, in other shards, cast, tied or untied."""

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
class ConvertSafetensorsResult(ConversionResult):
    """What was written again, or with `dry_run` would be."""

    def lines(self) -> list[str]:
        """The plan as a table, and what became of it."""
        from hfbench.actions.convert_text import ending_lines, plan_lines

        return [*plan_lines(self.plan), *ending_lines(self)]


@action("convert.safetensors", result=ConvertSafetensorsResult, needs=("numpy",), extra="torch")
@dataclass(frozen=True, kw_only=True)
class ConvertSafetensors:
    """Write a model as safetensors: from .bin or .pt, in shards of another size, cast, tied or untied.

    Nothing of a pickle is executed. Small files go along; killed and started again, it goes on where it stopped.
    """

    source: str = param("Folder, repository in the cache, or one file of weights", kind="model", positional=True)
    out: Path = param("Folder to make; it appears when it is complete", kind="path")
    max_shard_size: str = param("Most bytes of tensors in one file, as in 5GB or 512MiB", default="5GB")
    dtype: Literal["keep", "bf16", "fp16", "fp32"] = param("What floating tensors become", default="keep")
    allow: tuple[str, ...] = param(
        "What a cast may meet, of nan, inf, overflow, underflow; refused otherwise", default=()
    )
    tie: bool = param("Leave out a head that repeats the embedding, and say so in config.json", default=False)
    untie: bool = param("Store the head by itself, a copy of the embedding", default=False)
    fix_index: bool = param("Take the tensors as the files hold them, whatever the index says", default=False)
    dry_run: bool = param("Plan, and write nothing", default=False)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> ConvertSafetensorsResult:
        """Plan and write."""
        from hfbench.actions.convert_text import conversion_fields
        from hfbench.convert.options import CASTS, allowed, shard_bytes
        from hfbench.convert.repack import plan_repacked
        from hfbench.convert.stream.prescan import KINDS
        from hfbench.models.reference import resolve

        allow, most = allowed(self.allow, KINDS), shard_bytes(self.max_shard_size)
        place = resolve(self.source, cache_dir=self.cache_dir)
        folder = expand(str(self.out)).absolute()
        found = plan_repacked(
            place.folder / place.only if place.only else place.folder,
            run,
            dtype=CASTS[self.dtype],
            most_bytes=most,
            tie=self.tie,
            untie=self.untie,
            fix_index=self.fix_index,
        )
        written = None
        if not self.dry_run:
            written = found.write(folder, run, allow=allow, action="convert.safetensors")
        return ConvertSafetensorsResult(**conversion_fields(found, folder, written))
