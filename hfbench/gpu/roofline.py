"""How near decoding came to what a device can move and compute: MBU, MFU, and which of the two is the limit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hfbench.errors import HfbenchError
from hfbench.estimate.cache_bytes import cache_terms, kv_bytes_of_next_token
from hfbench.estimate.devices import Device, find_device
from hfbench.estimate.model import Reading, read_model
from hfbench.estimate.report import Request, workload_of
from hfbench.estimate.runtimes import runtimes
from hfbench.gpu.reading import Unavailable, Value, known
from hfbench.models.reference import Location

LONG_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
UNSAID = re.compile(r"\b(?:nvidia|hbm\w*|generation)\b", re.IGNORECASE)
"""Words of a driver's name for a card that the table leaves out."""
FORM = re.compile(r"\b(?:sxm|pcie)\d*\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """What the device did in the same run: bytes a second of a copy, read and written, and FLOP a second of a matmul.

    `matmul_dtype` is that of the model, `copy_bytes` the size of one buffer, `matmul_size` the side of the matrices.
    """

    copy: Value
    matmul: Value
    matmul_dtype: str
    copy_bytes: int
    matmul_size: int


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """One decode step against the device, each figure a value or the reason it is not known.

    `bytes` and `flops` are what a step must move and compute at `context` tokens. `mbu` = bytes / (TPOT x bandwidth)
    and `mfu` = flops / (TPOT x peak) are shares of the specification, `*_measured` of the ceilings of this run. They
    pass 1 where weights stay in a processor's cache. `bound` is `memory` or `compute`, whichever takes longer at the
    ceilings; `limit` is that time in seconds.
    """

    context: float
    bytes: Value
    weight_bytes: Value
    kv_bytes: Value
    flops: Value
    mbu: Value
    mfu: Value
    mbu_measured: Value
    mfu_measured: Value
    ceilings: Ceilings
    spec_device: str | Unavailable
    spec_bandwidth: Value
    spec_flops: Value
    bound: str | Unavailable
    limit: Value

    @property
    def sentence(self) -> str:
        """The shares in one line, or why there are none."""
        if isinstance(self.bytes, Unavailable):
            return f"not known: {self.bytes.reason}"
        told = [f"{self.bound}-bound" if isinstance(self.bound, str) else f"bound not known: {self.bound.reason}"]
        told += _shares("MBU", self.mbu, self.mbu_measured)
        told += _shares("MFU", self.mfu, self.mfu_measured)
        return ", ".join(told)


@dataclass(frozen=True, kw_only=True)
class StepWork:
    """What one decode step of a batch must do: bytes of weights and of caches, and floating-point operations."""

    weight_bytes: Value
    kv_bytes: Value
    flops: Value


def step_work(model: Any, location: Location, *, dtype: str, batch: int, context: float) -> StepWork:
    """Bytes and FLOP of a decode step at `context` tokens a sequence, the new one included.

    Weights count once a step as they lie in memory, the input embedding only when it is the output's too; KV caches are
    read whole and get one token (MBU of Databricks, "LLM Inference Performance Engineering", 2023). FLOP are 2 for each
    weight of a matrix and sequence, and 4 x heads x head_dim x context of each layer with attention (PaLM,
    arXiv:2204.02311, appendix B, forward pass). A cache of fixed size moves more than counted here: its empty part.
    """
    try:
        reading = read_model(location, runtime=runtimes()["transformers"], dtype=LONG_DTYPES.get(dtype))
    except HfbenchError as error:
        why = Unavailable(f"the architecture could not be read: {error.found}")
        return StepWork(weight_bytes=why, kv_bytes=why, flops=why)
    if experts := reading.model.shape.experts:
        why = Unavailable(f"which of its {experts} experts a step reads is not known")
        return StepWork(weight_bytes=why, kv_bytes=why, flops=why)
    moved, elements = _weights(model)
    cached, attended = _caches(reading, batch, round(context))
    flops = attended if isinstance(attended, Unavailable) else 2.0 * elements * batch + attended
    return StepWork(weight_bytes=float(moved), kv_bytes=cached, flops=flops)


def roofline(work: StepWork, *, tpot: float, context: float, ceilings: Ceilings, card: str | None) -> Roofline:
    """Shares of the specification of `card`, a driver's name or None for the CPU, and of the ceilings of this run."""
    spec = specification(card)
    bandwidth = _figure(spec, "bandwidth")
    peak = _figure(spec, "bf16_flops") if ceilings.matmul_dtype in ("bf16", "fp16") else _no_peak(spec)
    moved = _sum(work.weight_bytes, work.kv_bytes)
    by_memory, by_compute = _ratio(moved, ceilings.copy), _ratio(work.flops, ceilings.matmul)
    bound: str | Unavailable
    limit: Value
    if isinstance(by_memory, Unavailable) or isinstance(by_compute, Unavailable):
        bound = limit = by_memory if isinstance(by_memory, Unavailable) else by_compute  # type: ignore[assignment]
    else:
        bound, limit = ("memory" if by_memory >= by_compute else "compute"), max(by_memory, by_compute)
    return Roofline(
        context=context,
        bytes=moved,
        weight_bytes=work.weight_bytes,
        kv_bytes=work.kv_bytes,
        flops=work.flops,
        mbu=_share(moved, tpot, bandwidth),
        mfu=_share(work.flops, tpot, peak),
        mbu_measured=_share(moved, tpot, ceilings.copy),
        mfu_measured=_share(work.flops, tpot, ceilings.matmul),
        ceilings=ceilings,
        spec_device=spec if isinstance(spec, Unavailable) else spec.name,
        spec_bandwidth=bandwidth,
        spec_flops=peak,
        bound=bound,
        limit=limit,
    )


def specification(card: str | None) -> Device | Unavailable:
    """The row of the table of devices for a card as its driver names it, or why there is none."""
    if card is None:
        return Unavailable("there is no table of processors")
    if card.startswith("MIG"):
        return Unavailable("a slice of a divided GPU has no specification")
    said = UNSAID.sub("", card)
    for wanted in (re.sub(r"\b(sxm)\d+\b", r"\1", said, flags=re.IGNORECASE), FORM.sub("", said)):
        try:
            return find_device(wanted)
        except HfbenchError:
            continue
    return Unavailable(f"{card} is not in the table of devices")


def _weights(model: Any) -> tuple[int, int]:
    """Bytes a step reads of the weights, and elements of those that are matrices to multiply by."""
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    looked_up = embedding.weight.data_ptr() if embedding is not None else 0
    if head is not None and head.weight.data_ptr() == looked_up:
        looked_up = 0
    moved, elements, seen = 0, 0, set()
    for weight in model.parameters():
        place = weight.data_ptr()
        if place in seen or place == looked_up:
            continue
        seen.add(place)
        moved += weight.numel() * weight.element_size()
        elements += weight.numel() if weight.dim() > 1 else 0
    return moved, elements


def _caches(reading: Reading, batch: int, context: int) -> tuple[Value, Value]:
    """Bytes of the caches read and written in a step, and FLOP of attention, for the whole batch."""
    shape, caches = reading.model.shape, reading.model.caches
    if caches is None:
        why = Unavailable("what its cache holds is not known")
        return why, why
    if not shape.heads or not shape.head_dim:
        why = Unavailable("its attention heads are not known")
        return why, why
    work = workload_of(reading, Request(context=context, batch=batch, runtime="transformers"))
    read = sum(sum(term) for term in cache_terms(reading.model, work).values())
    written = batch * kv_bytes_of_next_token(reading.model, work)
    attended = sum(cache.tokens(context) for cache in caches if cache.kept)
    return float(read + written), 4.0 * shape.heads * shape.head_dim * attended * batch


def _figure(spec: Device | Unavailable, name: str) -> Value:
    if isinstance(spec, Unavailable):
        return spec
    return getattr(spec, name) or Unavailable(f"the table has no figure for {spec.name}")


def _no_peak(spec: Device | Unavailable) -> Unavailable:
    return spec if isinstance(spec, Unavailable) else Unavailable("the table has peaks for 16-bit types only")


def _sum(one: Value, other: Value) -> Value:
    if isinstance(one, Unavailable):
        return one
    return other if isinstance(other, Unavailable) else one + other


def _ratio(amount: Value, rate: Value) -> Value:
    if isinstance(amount, Unavailable):
        return amount
    return rate if isinstance(rate, Unavailable) else amount / rate


def _share(amount: Value, seconds: float, rate: Value) -> Value:
    """The part of a rate that an amount in a time is; a ceiling that was not reached tells nothing."""
    least = _ratio(amount, rate)
    return least if isinstance(least, Unavailable) else least / seconds


def _shares(name: str, spec: Value, measured: Value) -> list[str]:
    told = [
        f"{100 * share:.2g}% of the {of}"
        for share, of in ((known(spec), "specification"), (known(measured), "measured ceiling"))
        if share is not None
    ]
    return [f"{name} {' and '.join(told)}"] if told else []
