"""What a model is, in one plain record: the first screen, `hfbench inspect` and scripts all read it."""

from __future__ import annotations

from heapq import nlargest
from itertools import accumulate
from math import prod
from pathlib import Path

from hfbench.models.checkpoint import Checkpoint, open_checkpoint
from hfbench.models.columns import TensorColumns
from hfbench.models.config import ModelConfig, read_config
from hfbench.models.facts import BigTensor, DtypeShare, ModelSummary, TokenizerFacts
from hfbench.models.files import ENGINE_MANIFEST, MEGATRON_TRACKER, ModelFile, describe_file, list_files
from hfbench.models.problem import Problem, listed
from hfbench.models.reference import Location, NotFound, resolve
from hfbench.models.tokenizer import read_tokenizer
from hfbench.text import printable

BIGGEST = 10


def summarise(model: str | Path | Location, *, cache_dir: Path | None = None) -> ModelSummary:
    """The summary of a reference, a folder, a file of weights or a location already resolved.

    What is broken is listed in `problems`; only a folder without configuration and without weights is NotFound.
    """
    location = model if isinstance(model, Location) else resolve(str(model), cache_dir=cache_dir)
    if location.only:
        file = describe_file(location.folder / location.only, location.folder)
        return summary_of(location, [file], open_checkpoint(location.folder, [file], only=file))
    files = list_files(location.folder)
    return summary_of(location, files, open_checkpoint(location.folder, files))


def summary_of(location: Location, files: list[ModelFile], checkpoint: Checkpoint) -> ModelSummary:
    """The summary of a checkpoint that is open already."""
    alone = bool(location.only) and len(files) == 1
    config = ModelConfig(source=None, raw={}, problems=()) if alone else read_config(location.folder)
    if config.source is None and any(each.name == ENGINE_MANIFEST for each in files):
        show, measure = f"hfbench engine show {location.folder}", f"--mode engine:{location.folder}"
        remedy = f"{show} tells of it, and hfbench bench generate MODEL {measure} measures it"
        raise NotFound("this is an engine, which answers for a model and is none", where=location.folder, remedy=remedy)
    if config.source is None and any(each.name == MEGATRON_TRACKER for each in files):
        remedy = f"hfbench convert hf {location.folder} --out DIR makes a Hugging Face folder of it"
        raise NotFound("this is a Megatron checkpoint", where=location.folder, remedy=remedy)
    if checkpoint.format == "none" and config.source is None:
        found = f"no config.json and no weights; it holds {listed(each.name for each in files) or 'nothing'}"
        raise NotFound(found, where=location.folder, remedy="give the folder of a model")
    tokenizer = TokenizerFacts(special_tokens={}) if alone else read_tokenizer(location.folder)
    columns = checkpoint.columns
    dtypes = share_by_dtype(columns)
    return ModelSummary(
        model=location.only if alone else location.name,
        folder=str(location.folder),
        source=location.source,
        revision=location.revision,
        commit=location.commit,
        format=checkpoint.format,
        files=len(files),
        shards=len(checkpoint.shards),
        tensors=len(columns),
        parameters=sum(share.elements for share in dtypes.values()),
        weight_bytes=checkpoint.weight_bytes,
        disk_bytes=sum(each.bytes for each in files),
        dtypes=dtypes,
        architecture=config.architectures[0] if config.architectures else None,
        model_type=config.model_type,
        dtype=config.dtype,
        quantization=config.quantization,
        context=config.context,
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        experts=config.experts,
        vocab=config.vocab,
        tied=config.tied,
        tokenizer=tokenizer,
        biggest=biggest(columns),
        problems=_problems(files, config, checkpoint, tokenizer),
        config=config.raw,
    )


def share_by_dtype(columns: TensorColumns) -> dict[str, DtypeShare]:
    """Tensors, elements and bytes of each dtype, the largest first."""
    shares: dict[str, tuple[int, int, int]] = {}
    for (dtype_id, shape_id, size), count in columns.alike.items():
        dtype = columns.dtypes[dtype_id]
        tensors, elements, in_bytes = shares.get(dtype, (0, 0, 0))
        shares[dtype] = (
            tensors + count,
            elements + count * prod(columns.shapes[shape_id]),
            in_bytes + count * size,
        )
    ordered = sorted(shares.items(), key=lambda item: (-item[1][2], item[0]))
    return {dtype: DtypeShare(tensors=t, elements=e, bytes=b) for dtype, (t, e, b) in ordered}


def biggest(columns: TensorColumns, most: int = BIGGEST) -> tuple[BigTensor, ...]:
    """The largest tensors, the first of equals first."""
    by_size = sorted(((size, count) for (_, _, size), count in columns.alike.items()), reverse=True)
    so_far = accumulate(count for _, count in by_size)
    least = next((size for (size, _), held in zip(by_size, so_far, strict=True) if held >= most), 0)
    large = (row for row, size in enumerate(columns.sizes) if size >= least)
    rows = nlargest(most, large, key=columns.sizes.__getitem__)
    return tuple(
        BigTensor(name=each.name, dtype=each.dtype, shape=each.shape, bytes=each.bytes, shard=each.shard)
        for each in map(columns.__getitem__, rows)
    )


def _problems(
    files: list[ModelFile], config: ModelConfig, checkpoint: Checkpoint, tokenizer: TokenizerFacts
) -> tuple[Problem, ...]:
    """Each once, errors first: a broken link is seen by the listing and again by whoever wanted the file."""
    told = [*config.problems, *checkpoint.problems, *tokenizer.problems]
    known = {problem.where for problem in told}
    told += [
        each.as_problem()
        for each in files
        if each.problem and each.kind != "other" and printable(each.name) not in known
    ]
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(dict.fromkeys(told), key=lambda problem: order[problem.severity]))
