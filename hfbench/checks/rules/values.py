"""Values that can be judged without reading the whole of the weights."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.glance import glance
from hfbench.checks.subject import Subject
from hfbench.models.problem import counted, listed, quoted

FORMATS = ("pt", "tf", "flax", "mlx", "np")
"""What libraries write as metadata.format."""

NAMED = 20
"""Tensors with NaN that get a finding each; of more there is but their number."""


@rule("HB121", "no-format-in-metadata", severity="info", on="weights")
def no_format_in_metadata(subject: Subject) -> Iterator[Found]:
    """The metadata of the weights does not name the framework that wrote them.

    Why: transformers wants `format`; today it tolerates its absence, other loaders of whole models crash on it.
    Remedy: write the file again with metadata {"format": "pt"}.
    """
    lacking = [shard.name for shard in subject.checkpoint.shards if "format" not in shard.metadata]
    odd = [shard for shard in subject.checkpoint.shards if shard.metadata.get("format", "pt") not in FORMATS]
    noted = {problem.where for problem in subject.problems if problem.code == "st_bad_metadata"}
    lacking = [name for name in lacking if name not in noted]
    if lacking:
        whole = not subject.only and bool(subject.raw) and subject.has_tokenizer
        yield Found(
            message="no format in the metadata" + (f", nor in {listed(lacking[1:])}" if lacking[1:] else ""),
            file=lacking[0],
            evidence={"files": lacking[:20]},
            severity="warning" if whole else None,  # a loader of whole models may be given this folder as it is
        )
    for shard in odd:
        message = f"the format in the metadata is {quoted(shard.metadata['format'])}, which transformers refuses"
        yield Found(message=message, file=shard.name, severity="warning")


@rule("HB122", "not-finite-values", severity="warning", on="weights")
def not_finite_values(subject: Subject) -> Iterator[Found]:
    """Tensors hold NaN or infinite values.

    Why: one NaN in a norm or a bias turns every output of the model into NaN. Only the smallest tensors are looked at
    unless --values asks for every one.
    Remedy: fetch the weights again; if they come out the same, do not use them.
    """
    count = 0
    for count, (tensor, shard, nans, infinities) in enumerate(_not_finite(subject), 1):
        if count > NAMED:
            continue
        counts = [counted(nans, "NaN") if nans else "", f"{infinities:,} Inf" if infinities else ""]
        yield Found(
            message=f"tensor {quoted(tensor)} holds {' and '.join(filter(None, counts))}",
            file=shard,
            evidence={"tensor": tensor, "nan": nans, "inf": infinities},
        )
    if count > NAMED:
        yield Found(message=f"{counted(count - NAMED, 'further tensor')} with NaN or Inf", evidence={"count": count})


def _not_finite(subject: Subject) -> Iterator[tuple[str, str, int, int]]:
    """Tensor, shard, NaNs and infinities."""
    if subject.values is None:
        for seen in glance(subject).found:
            yield seen.tensor.name, seen.tensor.shard, seen.nans, seen.infinities
        return
    for each in subject.values.tensors:
        if each.nan or each.inf:
            yield each.name, each.file, each.nan or 0, each.inf or 0
