"""Conversions to and from Megatron, whole: what is read, the plan, the files, and the writing of them."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hfbench.convert.beside import carried_files
from hfbench.convert.boxes import TensorSpec
from hfbench.convert.formats.distcp_layout import lay_out_torch_dist
from hfbench.convert.formats.layout import FileLayout, bytes_by_file
from hfbench.convert.formats.megatron_folder import MegatronFacts
from hfbench.convert.formats.open import megatron_facts, open_tensors
from hfbench.convert.formats.pt_layout import lay_out_pt
from hfbench.convert.formats.safetensors_layout import SHARD_BYTES, lay_out_safetensors
from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.parallel import Parallel
from hfbench.convert.megatron.placing import ITERATION, rank_file
from hfbench.convert.megatron.plan import model_of, plan_of
from hfbench.convert.megatron.plan_back import plan_hf
from hfbench.convert.megatron.proposals import proposals, rank_bytes
from hfbench.convert.megatron.source import open_source
from hfbench.convert.plan import Plan
from hfbench.convert.plan_table import Proposal
from hfbench.convert.stored import TensorSet
from hfbench.convert.stream.assemble import Sources
from hfbench.convert.stream.convert import Written, convert
from hfbench.convert.stream.same import compared
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run
from hfbench.models.config import CONFIG
from hfbench.models.files import MEGATRON_TRACKER
from hfbench.models.json_text import read_object
from hfbench.models.problem import quoted

FLAGS = "launch_flags.txt"
CARRIED = "hf"
"""The folder beside the weights that keeps configuration, tokenizer and chat template for the way back."""

OLDEST = 2.0
"""Checkpoint version from which on the rows of a head lie together."""

SAVE_AGAIN = "the checkpoint is inconsistent: save it again"


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """Everything decided and nothing written."""

    folder: Path
    """Of the source."""
    plan: Plan
    sources: TensorSet
    layouts: tuple[FileLayout, ...]
    extra: Mapping[str, Path | bytes]
    ranks: Mapping[str, int]
    """Bytes of tensors by rank, or by file on the way back."""
    proposals: tuple[Proposal, ...] = ()
    """Other layouts, on the way to Megatron."""

    def write(self, out: Path, run: Run, *, allow: Collection[str] = (), action: str) -> Written:
        """Compare what must be equal, then write; errors as of `stream.convert`."""
        compare_twins(self.plan, self.sources, run)
        record = {
            "action": action,
            "family": self.plan.family,
            "dropped": {each.source: each.why for each in self.plan.dropped},
            "notes": list(self.plan.notes),
        }
        return convert(
            self.plan.targets, self.sources, self.layouts, out, run, extra=self.extra, allow=allow, record=record
        )


def to_megatron(model: str, destination: Destination, *, cache_dir: Path | None = None) -> Conversion:
    """A model of Hugging Face, or a GGUF file, to be written for Megatron; errors as of `plan_megatron`."""
    source = open_source(model, cache_dir=cache_dir)
    read = model_of(source.config, specs_of(source.tensors), destination)
    plan = plan_of(read, destination)
    plan = replace(plan, notes=(*source.notes, *plan.notes))
    layouts = _rank_files(plan, destination.parallel) if destination.format == "torch" else _torch_dist(plan)
    extra: dict[str, Path | bytes] = {f"{CARRIED}/{name}": content for name, content in source.beside.items()}
    extra[MEGATRON_TRACKER] = ITERATION.encode()
    extra[FLAGS] = _flag_lines(plan).encode()
    return Conversion(
        folder=source.folder,
        plan=plan,
        sources=source.tensors,
        layouts=tuple(layouts),
        extra=extra,
        ranks=rank_bytes(read.items, read.sizes, destination.parallel),
        proposals=proposals(read.items, read.sizes),
    )


def to_hf(
    folder: Path,
    *,
    config: Path | None = None,
    vocab: int | None = None,
    dtype: str | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> Conversion:
    """A Megatron checkpoint to be written for Hugging Face; errors as of `plan_hf`.

    `config` is a config.json or its folder, else the one that was carried along, else it is built from the arguments.
    """
    facts = megatron_facts(folder)
    if facts.checkpoint_version is not None and facts.checkpoint_version < OLDEST:
        told = f"the checkpoint version {facts.checkpoint_version:g} orders query, key and value otherwise"
        raise UsageError(told, where=folder, remedy="load and save it with a Megatron-LM of today")
    tensors = open_tensors(folder)
    kept = _carried(facts, folder) if config is None else config
    file = kept / CONFIG if kept is not None and kept.is_dir() else kept
    given = None if file is None else read_object(file).value
    plan = plan_hf(facts.args, specs_of(tensors), given, vocab=vocab, dtype=dtype)
    specs = [target.spec for target in plan.targets]
    layouts = tuple(lay_out_safetensors(specs, most_bytes=shard_bytes))
    extra = carried_files(kept) if kept is not None and kept.is_dir() else {}
    if given != plan.args:
        extra[CONFIG] = json.dumps(dict(plan.args), indent=2, ensure_ascii=False).encode() + b"\n"
    elif file is not None:
        extra[CONFIG] = file
    return Conversion(
        folder=folder,
        plan=plan,
        sources=tensors,
        layouts=layouts,
        extra=extra,
        ranks=bytes_by_file(layouts, specs),
    )


def _rank_files(plan: Plan, parallel: Parallel) -> list[FileLayout]:
    """A file a rank, with the number of its process: files that were exchanged later are told by it."""
    files: dict[str, list[TensorSpec]] = {}
    for target in plan.targets:
        files.setdefault(target.file, []).append(target.spec)
    processes = {rank_file(parallel, rank): parallel.process(rank) for rank in parallel.ranks()}
    return [lay_out_pt(path, inside, _common(plan, rank=processes[path])) for path, inside in files.items()]


def _torch_dist(plan: Plan) -> list[FileLayout]:
    specs = [target.spec for target in plan.targets]
    return lay_out_torch_dist(ITERATION, specs, _common(plan), stacked=plan.stacked)


def _common(plan: Plan, **more: int) -> dict[str, object]:
    """What a checkpoint of Megatron holds beside its weights; `more` are arguments that other ranks have otherwise."""
    return {"args": Namespace(**plan.args, **more), "checkpoint_version": 3.0, "iteration": 0}


def compare_twins(plan: Plan, sources: TensorSet, run: Run) -> None:
    """HfbenchError for the first tensor that should repeat another and does not."""
    total = len(plan.twins)
    with Sources(sources) as reading:
        for place, (name, other) in enumerate(plan.twins):
            parts = compared(sources.tensors[name], sources.tensors[other], reading)
            if not all(equal for _, equal in parts):
                told = f"{quoted(name)} differs from {quoted(other)}, which it should repeat"
                tied = "lm_head" in name
                remedy = 'set "tie_word_embeddings": false in config.json, if the model has a head of its own'
                raise HfbenchError(told, where=sources.folder, remedy=remedy if tied else SAVE_AGAIN)
            run.progress("compare", place + 1, total, "tensors")


def specs_of(tensors: TensorSet) -> dict[str, TensorSpec]:
    """Names, dtypes and shapes of a set."""
    return {name: tensor.spec for name, tensor in tensors.tensors.items()}


def _carried(facts: MegatronFacts, folder: Path) -> Path | None:
    """The folder that a conversion left beside the weights."""
    places = (folder / CARRIED, facts.folder.parent / CARRIED, facts.folder / CARRIED)
    return next((place for place in places if (place / CONFIG).is_file()), None)


def _flag_lines(plan: Plan) -> str:
    """The words, a flag with its values on each line."""
    text = ""
    for word in plan.launch_flags:
        text += ("\n" if word.startswith("--") and text else " " if text else "") + word
    return text + "\n"
