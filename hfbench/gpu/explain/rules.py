"""Causes of memory that is not to be had: one rule a function, each over a plain picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hfbench.gpu.explain.picture import CONTEXT_BYTES, Cause, Explanation, MemoryPicture
from hfbench.units import show_bytes

NOTABLE = 256 * 2**20
"""Bytes below which a part is not worth a sentence, unless it alone explains the failure."""
NOTABLE_SHARE = 0.1
"""Share of the device, or of what torch reserved, that is worth a sentence."""
WASTED_SHARE = 0.05
"""Share of what torch reserved from which on free pieces are called the cause, and not the crumbs of a full device."""
MOST_TOLD = 4
"""Processes named in one sentence."""

Judge = Callable[[MemoryPicture], Cause | None]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A cause that can be found: its id, what it means, and the function that looks for it."""

    id: str
    meaning: str
    judge: Judge


RULES: list[Rule] = []
"""In the order of what to mend first, among those that alone explain a failure."""


def rule(id: str) -> Callable[[Judge], Judge]:
    """Declare a function to be a rule; the first line of its docstring is its meaning."""

    def declare(judge: Judge) -> Judge:
        RULES.append(Rule(id=id, meaning=(judge.__doc__ or "").strip().splitlines()[0].rstrip("."), judge=judge))
        return judge

    return declare


def explain(picture: MemoryPicture, *, sources: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> Explanation:
    """All causes that apply: those without which the request would fit first, then by size."""
    found = [cause for each in RULES if (cause := each.judge(picture)) is not None]
    enough = [each for each in found if each.enough]
    others = sorted((each for each in found if not each.enough), key=lambda each: -each.bytes)
    return Explanation(picture=picture, causes=(*enough, *others), sources=sources, notes=notes)


@rule("request-too-large")
def request_too_large(picture: MemoryPicture) -> Cause | None:
    """One request alone exceeds the device.

    Nothing that is freed would help.
    """
    request, total = picture.request, picture.total
    if request is None or total is None or request <= total:
        return None
    slice = f", a slice of {show_bytes(picture.card_total)}" if picture.slice and picture.card_total else ""
    return Cause(
        id="request-too-large",
        title="one request is larger than the whole device",
        evidence=f"{show_bytes(request)} were asked for at once; the device has {show_bytes(total)}{slice}",
        remedy="look for a wrong shape; else lower batch or sequence length, or split the model over devices",
        bytes=request - total,
        enough=True,
    )


@rule("outside-allocator")
def outside_allocator(picture: MemoryPicture) -> Cause | None:
    """A library beside torch's allocator found no memory, while torch may hold some that is free."""
    if not picture.outside:
        return None
    held = picture.cached
    kept = f"; torch keeps {show_bytes(held)} that no tensor uses" if held else ""
    return Cause(
        id="outside-allocator",
        title=f"{picture.outside} asked the driver for memory itself and got none",
        evidence=f"the error is {picture.outside}'s, not that of torch's allocator{kept}",
        remedy="leave room beside torch: call torch.cuda.empty_cache() before, or cap it with"
        " torch.cuda.set_per_process_memory_fraction(0.9)",
        bytes=held or 0,
        enough=picture.failed and not picture.request,
    )


@rule("fraction-cap")
def fraction_cap(picture: MemoryPicture) -> Cause | None:
    """The process may use a part of the device only, by its own setting."""
    cap, total, reserved = picture.cap, picture.total, picture.reserved
    if cap is None or total is None or cap >= total:
        return None
    request = picture.request or 0
    reached = reserved is not None and reserved + request > cap
    fits = picture.free is not None and picture.free >= request
    if not reached and picture.failed:
        return None
    left = f"; the device itself has {show_bytes(picture.free)} free" if picture.free is not None else ""
    held = f", {show_bytes(reserved)} of it reserved" if reserved is not None else ""
    return Cause(
        id="fraction-cap",
        title="this process is not allowed more of the device",
        evidence=f"set_per_process_memory_fraction allows {show_bytes(cap)} of {show_bytes(total)}{held}{left}",
        remedy="raise the fraction (torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in"
        " PYTORCH_ALLOC_CONF); it reserves nothing and keeps no other process away",
        bytes=total - cap,
        enough=picture.failed and reached and fits,
    )


@rule("mig-slice")
def mig_slice(picture: MemoryPicture) -> Cause | None:
    """The device is a slice of a divided card: what the card has free is not its own."""
    total, card = picture.total, picture.card_total
    if not picture.slice or total is None or card is None:
        return None
    used = picture.process_used if picture.process_used is not None else picture.reserved
    wanted = (used or 0) + (picture.request or 0)
    return Cause(
        id="mig-slice",
        title="the device is a slice of a divided card",
        evidence=f"the slice has {show_bytes(total)}, the card {show_bytes(card)}",
        remedy="use a larger MIG profile (nvidia-smi mig -lgip lists them), or a card that is not divided",
        bytes=card - total,
        enough=picture.failed and total < wanted <= card,
    )


@rule("fragmentation")
def fragmentation(picture: MemoryPicture) -> Cause | None:
    """torch holds enough free memory, in pieces that are too small."""
    cached, request = picture.cached, picture.request
    if not cached or picture.reserved is None:
        return None
    largest = picture.largest_free
    whole = largest is not None and (largest >= request if request is not None else largest * 2 >= cached)
    if whole:
        return None
    wasted = request is not None and (cached >= request or cached >= WASTED_SHARE * picture.reserved)
    enough = picture.failed and request is not None and wasted and cached + (picture.free or 0) >= request
    if not enough and (cached < NOTABLE or cached < NOTABLE_SHARE * picture.reserved):
        return None
    piece = "" if largest is None else f", the largest piece of it {show_bytes(largest)}"
    split = picture.inactive_split
    stuck = f"; {show_bytes(split)} lie in segments still in use elsewhere" if split else ""
    remedy = "start the process with PYTORCH_ALLOC_CONF=expandable_segments:True (older torch: PYTORCH_CUDA_ALLOC_CONF)"
    if picture.expandable:
        remedy = (
            "segments can grow already: keep sizes of tensors alike from step to step, allocate the long-lived ones"
            " first, and free on the stream that allocated"
        )
    return Cause(
        id="fragmentation",
        title="torch's free memory is in pieces that are too small",
        evidence=f"{show_bytes(cached)} are reserved and hold no tensor{piece}{stuck}",
        remedy=remedy,
        bytes=cached,
        enough=enough,
    )


@rule("private-pools")
def private_pools(picture: MemoryPicture) -> Cause | None:
    """CUDA graphs keep memory in pools that nothing else may use."""
    private = picture.private
    enough = _would_fit(picture, private)
    if not private or (not enough and not _notable(picture, private)):
        return None
    empty = picture.private_cached
    idle = f", {show_bytes(empty)} of it free for that graph alone" if empty and picture.private_reserved else ""
    return Cause(
        id="private-pools",
        title="CUDA graphs keep memory in private pools",
        evidence=f"{show_bytes(private)} belong to private pools{idle}",
        remedy="capture fewer sizes, the largest first, all with one pool=torch.cuda.graph_pool_handle(); drop graphs"
        " that are no longer replayed",
        bytes=private,
        enough=enough,
    )


@rule("other-processes")
def other_processes(picture: MemoryPicture) -> Cause | None:
    """Other processes hold memory of the same device."""
    held = picture.others_bytes + (picture.unlisted or 0 if picture.process_used is not None else 0)
    enough = _would_fit(picture, held)
    untold = [each for each in picture.others if each.bytes is None]
    if not enough and not _notable(picture, held) and not (untold and not held):
        return None
    listed = sorted((each for each in picture.others if each.bytes), key=lambda each: -(each.bytes or 0))
    parts = [f"pid {each.pid} {show_bytes(each.bytes or 0)}{_who(each.who)}" for each in listed[:MOST_TOLD]]
    if len(listed) > MOST_TOLD:
        parts.append(
            f"{len(listed) - MOST_TOLD} more processes {show_bytes(sum(e.bytes or 0 for e in listed[MOST_TOLD:]))}"
        )
    if picture.unlisted and picture.unlisted >= NOTABLE:
        parts.append(f"{show_bytes(picture.unlisted)} of processes that are not visible from here")
    if untold:
        parts.append(
            f"pid {', '.join(str(each.pid) for each in untold[:MOST_TOLD])} an amount the driver does not tell"
        )
    return Cause(
        id="other-processes",
        title="other processes hold memory of this device",
        evidence=f"they hold {show_bytes(held)}: {'; '.join(parts)}" if held else "; ".join(parts),
        remedy="end them or wait for them, or use another device",
        bytes=held,
        enough=enough,
    )


@rule("non-torch")
def non_torch(picture: MemoryPicture) -> Cause | None:
    """Libraries beside torch's allocator hold more than a context takes."""
    held = picture.non_torch
    if held is None or held <= CONTEXT_BYTES:
        return None
    beyond = held - CONTEXT_BYTES
    enough = _would_fit(picture, beyond)
    if not enough and not _notable(picture, beyond):
        return None
    return Cause(
        id="non-torch",
        title="this process holds memory that is not torch's",
        evidence=f"the driver counts {show_bytes(picture.process_used or 0)} for it, torch reserved"
        f" {show_bytes(picture.reserved or 0)}: {show_bytes(held)} are context, kernels, cuBLAS, NCCL and the like",
        remedy="make fewer NCCL communicators or lower NCCL_BUFFSIZE, set CUBLAS_WORKSPACE_CONFIG=:4096:2, keep"
        " CUDA_MODULE_LOADING=LAZY; look for a second framework in this process",
        bytes=held,
        enough=enough,
    )


@rule("peak-between-samples")
def peak_between_samples(picture: MemoryPicture) -> Cause | None:
    """Samples saw room that was gone at the moment of the failure."""
    seen, total = picture.sampled_peak, picture.total
    if seen is None or total is None:
        return None
    at_failure = total - picture.free if picture.failed and picture.free is not None else 0
    most = max(at_failure, picture.process_used or 0, picture.reserved_peak or 0)
    unseen = most - seen
    if unseen < max(NOTABLE, NOTABLE_SHARE * seen):
        return None
    return Cause(
        id="peak-between-samples",
        title="the peak was too short for the samples",
        evidence=f"samples saw at most {show_bytes(seen)} in use; in between it was {show_bytes(most)}",
        remedy="believe torch.cuda.max_memory_reserved() over nvidia-smi; what peaks is often logits, attention scores"
        " or a temporary copy: lower the chunk that makes them",
        bytes=unseen,
        enough=False,  # it tells why nobody saw it coming, not what took the memory
    )


@rule("working-set")
def working_set(picture: MemoryPicture) -> Cause | None:
    """Live tensors and the request together exceed the device: it is simply full."""
    allocated, total = picture.allocated, picture.total
    if allocated is None or total is None or not picture.failed or picture.request is None:
        return None
    room = min(total, picture.cap) if picture.cap is not None else total
    if allocated < room / 2 and allocated + picture.request <= room:
        return None
    over = allocated + picture.request - room
    missing = f", {show_bytes(over)} too much" if over > 0 else ""
    return Cause(
        id="working-set",
        title="live tensors fill the device",
        evidence=f"{show_bytes(allocated)} of tensors are alive and {show_bytes(picture.request)} were asked for, of"
        f" {show_bytes(room)}{missing}",
        remedy="lower batch, sequence length or dtype, checkpoint activations, offload, or split over devices",
        bytes=allocated,
        enough=over > 0,
    )


@rule("gone-again")
def gone_again(picture: MemoryPicture) -> Cause | None:
    """More was free than was asked for when the failure was written down: whoever held it has let go."""
    request, free = picture.request, picture.free
    if not picture.failed or request is None or free is None or free < request or picture.outside:
        return None
    if picture.cap is not None and picture.reserved is not None and picture.reserved + request > picture.cap:
        return None
    return Cause(
        id="gone-again",
        title="the memory was there when the failure was written down",
        evidence=f"{show_bytes(free)} are free and {show_bytes(request)} were asked for",
        remedy="look for a neighbour that peaked at the same moment (hfbench gpus --watch), and for a library that"
        " changes the current device; then run again",
        bytes=free,
        enough=False,
    )


def _would_fit(picture: MemoryPicture, back: int) -> bool:
    """Whether the request would have fitted, had so much been given back."""
    if not picture.failed or picture.request is None or picture.free is None or not back:
        return False
    return picture.free < picture.request <= picture.free + back


def _notable(picture: MemoryPicture, held: int) -> bool:
    return held >= NOTABLE and held >= NOTABLE_SHARE * (picture.total or 0)


def _who(who: str) -> str:
    return f" ({who})" if who else ""
