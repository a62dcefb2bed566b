"""The cards: answering, seen by CUDA, whole, and not held by anybody else."""

from __future__ import annotations

import re

from hfbench.doctor.check import Outcome, check, error, ok, saw, some, unknown, warning
from hfbench.doctor.devices import LIMIT, NONE, fine, named, once, seen_on
from hfbench.doctor.system import System
from hfbench.gpu.devices import VISIBLE, Gpu, visible_gpus
from hfbench.gpu.reading import Unavailable, known
from hfbench.gpu.telemetry import DeviceReading
from hfbench.gpu.telemetry.decode import xid_meaning
from hfbench.models.problem import counted
from hfbench.units import show_bytes

FATAL_XIDS = frozenset({48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140, 154})
"""Xids that tell of the card or the driver; others (13, 31, 43) tell of a program that failed."""
BUSY = 0.05
"""Part of a card's memory from which on somebody else's process is worth a word."""

_XID = re.compile(r"NVRM: Xid \(([^)]*)\): (\d+)")


@check("cards.answer", "cards answer", limit=LIMIT)
def answer(system: System) -> Outcome:
    """A card that fell off the bus stays in the list and fails every program."""
    lost = [each for each in system.gpus.devices if each.reason]
    if lost:
        return error(
            f"{named(lost)}: {lost[0].reason}",
            *(seen_on(each, each.reason) for each in lost),
            remedy="stop what uses it, try `nvidia-smi --gpu-reset`, else restart the machine",
        )
    if system.gpus.waiting:
        return warning(system.gpus.waiting, saw(system.gpus.waiting, "NVML"), remedy="look at `dmesg` for the driver")
    return fine(system, "all answer")


@check("cards.visible", "cards that CUDA sees", limit=LIMIT)
def visible(system: System) -> Outcome:
    """CUDA_VISIBLE_DEVICES with a number or UUID that is not there hides that card and all after it."""
    told, devices = system.environ.get(VISIBLE), system.gpus.devices
    if not devices:
        return ok(NONE, saw(system.gpus.reason, "NVML"))
    if told is None:
        return ok(f"all {len(devices)}", saw("not set", VISIBLE))
    gpus = [Gpu(index=each.index, lease=known(each.uuid) or "", name="") for each in devices]
    entries = [entry for entry in told.split(",") if entry.strip()]
    seen = visible_gpus(gpus, told)
    read = (saw(repr(told), VISIBLE), saw(some(known(each.uuid) or "?" for each in devices), "NVML"))
    if not seen:
        return error(
            f"none of {counted(len(devices), 'card')}", *read, remedy=f"unset {VISIBLE}, or name a card that is there"
        )
    if len(seen) < len(entries):
        wrong = entries[len(seen)].strip()
        return error(f"{wrong!r} is no card: it and all after it are hidden", *read, remedy=f"mend {VISIBLE}")
    if len(seen) < len(devices):
        remedy = f"unset {VISIBLE} to use all; the scheduler may have set it"
        return warning(f"{len(seen)} of {len(devices)}", *read, remedy=remedy)
    return ok(f"all {len(devices)}", *read)


@check("cards.errors", "memory errors", limit=LIMIT)
def errors(system: System) -> Outcome:
    """Uncorrected errors end programs or, with ECC off, change numbers without a word."""
    failed, pending, uncorrected = [], [], []
    for each in system.gpus.devices:
        if each.rows.remapping_failed is True:
            failed.append(each)
        if each.rows.remapping_pending is True or each.rows.retirement_pending is True:
            pending.append(each)
        if (known(each.ecc.volatile_uncorrected) or 0) > 0:
            uncorrected.append(each)
    seen = [seen_on(each, _memory_words(each)) for each in once(*failed, *pending, *uncorrected)]
    if failed:
        return error(
            f"{named(failed)}: a broken row of memory could not be replaced",
            *seen,
            remedy="take the card out of use and have it replaced",
        )
    if pending or uncorrected:
        what = (
            "memory waits to be taken out of use" if pending else "uncorrected ECC errors since the driver was loaded"
        )
        return warning(
            f"{named(pending or uncorrected)}: {what}",
            *seen,
            remedy="reset the card when it is idle: `nvidia-smi --gpu-reset -i INDEX`",
        )
    return fine(system, "no uncorrected error")


@check("cards.ecc", "ECC", limit=LIMIT)
def ecc(system: System) -> Outcome:
    """Without ECC a flipped bit of memory is a wrong number, and nobody hears of it."""
    off = [each for each in system.gpus.devices if each.ecc.enabled is False]
    if off:
        return warning(
            f"{named(off)}: ECC is off",
            *(seen_on(each, "ECC off") for each in off),
            remedy="turn it on with `nvidia-smi -e 1` and reset the card, unless the memory it takes is worth more",
        )
    return fine(system, "on, or the card has none")


@check("cards.xid", "errors of the driver (Xid)", limit=LIMIT)
def xid(system: System) -> Outcome:
    """The kernel log is where a card's trouble is told first."""
    if not system.gpus.devices:
        return ok(NONE)
    ran = system.run(["dmesg"], 5.0)
    if ran is None or ran.code:
        why = "dmesg is not there" if ran is None else ran.err.strip().partition("\n")[0] or "dmesg refuses"
        remedy = "let the user read it with `sysctl kernel.dmesg_restrict=0`, or run `sudo dmesg | grep Xid`"
        return unknown("the kernel log cannot be read", saw(why, "dmesg"), remedy=remedy)
    found = [(bus, int(code)) for bus, code in _XID.findall(ran.out)]
    seen = [saw(f"Xid {code} of {bus}: {xid_meaning(code)}", "dmesg") for bus, code in list(dict.fromkeys(found))[-6:]]
    if fatal := [code for _, code in found if code in FATAL_XIDS]:
        return error(
            f"Xid {some(dict.fromkeys(fatal))} in the kernel log",
            *seen,
            remedy="reset the card or restart the machine; when it comes again, have the card replaced",
        )
    if found:
        codes = some(dict.fromkeys(code for _, code in found))
        return warning(
            f"Xid {codes} in the kernel log",
            *seen,
            remedy="programs failed on the card: find which by the time in `dmesg -T`",
        )
    return ok("none in the kernel log", saw("no line with NVRM: Xid", "dmesg"))


@check("cards.held", "other processes", limit=LIMIT)
def held(system: System) -> Outcome:
    """Memory that somebody else holds is memory a model does not get."""
    found = []
    for card in system.gpus.devices:
        total = known(card.memory.total) or 0
        processes = () if isinstance(card.processes, Unavailable) else card.processes
        found += [(card, each) for each in processes if not each.job and _notable(known(each.memory), total)]
    gone = [(card, each) for card, each in found if not system.exists(f"/proc/{each.pid}")]
    zombies = [(card, each) for card, each in found if _state(system, each.pid) == "Z"]
    seen = [
        seen_on(
            card,
            f"pid {each.pid} of {known(each.user) or '?'}, {_bytes(known(each.memory))}: {known(each.command) or '?'}",
        )
        for card, each in found
    ]
    if zombies:
        pids = some(each.pid for _, each in zombies)
        return error(
            f"pid {pids} is dead and still holds memory", *seen, remedy="end its parent process, or restart the machine"
        )
    if found:
        hidden = " (some in another container)" if gone else ""
        return warning(
            f"{named(once(*(card for card, _ in found)))}: {counted(len(found), 'program')} not of hfbench{hidden}",
            *seen,
            remedy="end what is not needed, or take another card with --device cuda:N",
        )
    return fine(system, "nobody else holds memory")


def _memory_words(device: DeviceReading) -> str:
    counts = {
        "uncorrected since load": device.ecc.volatile_uncorrected,
        "over its life": device.ecc.aggregate_uncorrected,
        "rows replaced": device.rows.remapped_uncorrected,
    }
    told = [f"{name} {value:.0f}" for name, each in counts.items() if (value := known(each)) is not None]
    flags = {"pending": device.rows.remapping_pending, "failed": device.rows.remapping_failed}
    return ", ".join([*told, *(f"remapping {name}" for name, flag in flags.items() if flag is True)])


def _notable(memory: float | None, total: float) -> bool:
    return memory is None or not total or memory / total >= BUSY


def _bytes(memory: float | None) -> str:
    return "memory not told" if memory is None else show_bytes(memory)


def _state(system: System, pid: int) -> str:
    """The letter of a process's state; empty when it is not there."""
    return (system.text(f"/proc/{pid}/stat") or "").rpartition(")")[2].strip()[:1]
