"""Values that can be judged without reading the whole of the weights."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.glance import glance
from hfbench.checks.subject import Subject
from hfbench.models.problem import counted, listed, quoted

FORMATS = ("pt", "tf", "flax", "mlx", "np")
"""What libraries write as metadata.format."""


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
            message=f"{listed(lacking)}: no format in the metadata",
            file=lacking[0],
            evidence={"files": lacking[:20]},
            severity="warning" if whole else None,  # a loader of whole models may be given this folder as it is
        )
    for shard in odd:
        message = f"the format in the metadata is {quoted(shard.metadata['format'])}, which transformers refuses"
        yield Found(message=message, file=shard.name, severity="warning")


@rule("HB122", "not-finite-values", severity="warning", on="weights")
def not_finite_values(subject: Subject) -> Iterator[Found]:
    """Small tensors hold NaN or infinite values.

    Why: one NaN in a norm or a bias turns every output of the model into NaN. Only the smallest tensors are looked at.
    Remedy: fetch the weights again; if they come out the same, do not use them.
    """
    seen = glance(subject)
    for each in seen.found:
        counts = [counted(each.nans, "NaN") if each.nans else "", f"{each.infinities:,} Inf" if each.infinities else ""]
        yield Found(
            message=f"tensor {quoted(each.tensor.name)} holds {' and '.join(filter(None, counts))}",
            file=each.tensor.shard,
            evidence={"tensor": each.tensor.name, "nan": each.nans, "inf": each.infinities},
        )
