"""What every value of the weights tells, where `--values` asked for them to be read."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from hfbench.checks.base import Found, rule
from hfbench.checks.rules.sizes import CASTS
from hfbench.checks.subject import Subject
from hfbench.models.problem import counted, listed
from hfbench.models.values.codes import code_of
from hfbench.models.values.facts import LOST, TensorValues

EVIDENCE = 20
"""Tensors named in the evidence of one finding."""

HOLLOW = 0.5
"""Zeros in a weight that are worth a word: of 2:4 sparsity it is just so many."""

ZERO_CENTRED = (
    "gemma",
    "minimax_m3",
    "muse_",
    "nemotron",
    "qwen3_5",
    "qwen3_next",
    "qwen4_exp",
    "recurrent_gemma",
    "step3p7",
    "t5gemma",
    "vaultgemma",
    "videoprism",
)
"""Beginnings of model types whose norms multiply by one plus the weight. Source: models of transformers 5.24."""

_NORM = re.compile(r"(^|[._])(\w*norm\w*|ln_?\w*)\.weight$")


@rule("HB123", "float16-overflow", severity="warning", on="weights")
def float16_overflow(subject: Subject) -> Iterator[Found]:
    """Weights hold values that float16 turns into infinities; asked of every value with --values.

    Why: float16 ends at 65504. One infinity in a weight makes the outputs infinite or NaN; an info where nothing asks
    for float16.
    Remedy: load the model in bfloat16 or float32.
    """
    found = sorted(_tensors(subject, lambda each: bool(each.float16_inf)), key=lambda each: -(each.absmax or 0.0))
    if found:
        does = "holds" if len(found) == 1 else "hold"
        yield Found(
            message=f"{counted(len(found), 'tensor')} {does} values that float16 turns into infinities: "
            f"{_named(found)}, up to {found[0].absmax:.3g}",
            file=found[0].file,
            evidence=_evidence(found, "float16_inf", "absmax"),
            severity=None if _float16(subject) else "info",
        )


@rule("HB124", "float16-underflow", severity="warning", on="weights")
def float16_underflow(subject: Subject) -> Iterator[Found]:
    """Weights lose a hundredth of their values or more in float16; asked of every value with --values.

    Why: what is at most 2^-25 becomes zero in float16; a scale or a bias that is zero changes what the model says. An
    info where nothing asks for float16.
    Remedy: load the model in bfloat16 or float32.
    """
    found = sorted(_tensors(subject, lambda each: each.lost_share >= LOST), key=lambda each: -each.lost_share)
    if found:
        does = "loses" if len(found) == 1 else "lose"
        yield Found(
            message=f"{counted(len(found), 'tensor')} {does} values in float16, where they become zero: "
            f"{_named(found)}, up to {found[0].lost_share:.0%}",
            file=found[0].file,
            evidence=_evidence(found, "float16_zero", "lost_share"),
            severity=None if _float16(subject) else "info",
        )


@rule("HB125", "one-value-weights", severity="warning", on="weights")
def one_value_weights(subject: Subject) -> Iterator[Found]:
    """Weights are nothing but zeros, or one value again and again; asked of every value with --values.

    Why: training leaves no such matrix, and no norm of zeros where a norm multiplies by it. A download into a file of
    full size leaves zeros, a converter that lost a tensor leaves what the library began with.
    Remedy: compare the sha256 of the file with the one on the Hub; fetch or convert the weights again.
    """
    for what, value in (("nothing but zeros", True), ("one value again and again", False)):
        found = [each for each in _tensors(subject, _constant(subject)) if (not each.absmax) is value]
        if found:
            does = "is" if len(found) == 1 else "are"
            yield Found(
                message=f"{counted(len(found), 'weight')} {does} {what}: {_named(found)}",
                file=found[0].file,
                evidence=_evidence(found, "absmax", "shape"),
            )


@rule("HB126", "values-not-measured", on="weights")
def values_not_measured(subject: Subject) -> Iterator[Found]:
    """Values could not be measured though --values asks for them.

    Why: nothing is known of them. A file gave out while it was read, or the format is one that is not opened here; of
    packed dtypes and other formats it is an info.
    Remedy: fetch the file again, or convert the weights to safetensors.
    """
    if subject.values is None:
        return
    packed = Counter[str]()
    owing = defaultdict[tuple[str, str], list[TensorValues]](list)
    for each in _tensors(subject, lambda each: bool(each.note)):
        if code_of(each.dtype) is None:
            packed[each.dtype] += 1
        else:
            owing[each.file, each.note].append(each)
    for (file, why), tensors in owing.items():
        message = f"{why}, which leaves {counted(len(tensors), 'tensor')} unmeasured: {_named(tensors)}"
        yield Found(message=message, file=file, evidence={"tensors": [each.name for each in tensors[:EVIDENCE]]})
    if packed:
        told = ", ".join(f"{count:,} of {dtype}" for dtype, count in packed.items())
        yield Found(
            message=f"tensors whose values are packed are not measured: {told}",
            evidence=dict(packed),
            remedy="none is needed: packed values are finite by their format",
            severity="info",
        )
    unopened = subject.weights.unopened if not subject.only else ()
    if not len(subject.checkpoint.columns) and (unopened or (subject.only and not subject.weights.shards)):
        names = [each.name for each in unopened] or [subject.only]
        message = f"only values of safetensors are measured, not those of {listed(names)}"
        yield Found(message=message, file=names[0], evidence={"files": names[:EVIDENCE]}, severity="info")


@rule("HB127", "hollow-weights", severity="info", on="weights")
def hollow_weights(subject: Subject) -> Iterator[Found]:
    """Half or more of the values of weights are zero; asked of every value with --values.

    Why: a pruned model is like that, and so is a file with a hole that a broken download left.
    Remedy: if the model is not meant to be sparse, compare the sha256 of the file with the one on the Hub.
    """
    found = _tensors(
        subject, lambda each: (each.zero_fraction or 0.0) >= HOLLOW and not each.constant and _matrix(each)
    )
    if found:
        found.sort(key=lambda each: -(each.zero_fraction or 0.0))
        does = "is" if len(found) == 1 else "are"
        yield Found(
            message=f"{counted(len(found), 'weight')} {does} zero by half or more: "
            f"{_named(found)}, up to {found[0].zero_fraction:.0%}",
            file=found[0].file,
            evidence=_evidence(found, "zero_fraction"),
        )


def _tensors(subject: Subject, wanted: Any) -> list[TensorValues]:
    return [each for each in subject.values.tensors if wanted(each)] if subject.values else []


def _float16(subject: Subject) -> bool:
    """Whether the model is to be loaded in float16: asked for, or else stated by the configuration."""
    asked = subject.options.dtype
    dtype = subject.config.dtype if asked in (None, "auto") else asked
    return CASTS.get(dtype or "", dtype) == "float16"


def _constant(subject: Subject) -> Any:
    kind = subject.config.model_type or ""
    ordinary = bool(kind) and not subject.custom and not kind.startswith(ZERO_CENTRED)

    def constant(each: TensorValues) -> bool:
        norm = ordinary and len(each.shape) == 1 and not each.absmax and _NORM.search(each.name)
        return bool(each.constant and not each.nan and not each.inf and (norm or _matrix(each)))

    return constant


def _matrix(each: TensorValues) -> bool:
    """True of a weight with rows and columns; the second half of an adapter begins as zeros."""
    wide = sum(length > 1 for length in each.shape) >= 2
    return wide and each.name.endswith("weight") and "lora_" not in each.name


def _named(found: Sequence[TensorValues]) -> str:
    return listed(each.name for each in found)


def _evidence(found: Sequence[TensorValues], *fields: str) -> dict[str, Any]:
    worst = [{"tensor": each.name, **{name: getattr(each, name) for name in fields}} for each in found[:EVIDENCE]]
    return {"count": len(found), "tensors": worst}
