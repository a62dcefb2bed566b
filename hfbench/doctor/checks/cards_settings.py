"""The settings of the cards: what makes one slower than its like, or keeps programs from it."""

from __future__ import annotations

from hfbench.doctor.check import Outcome, check, error, saw, unknown, warning
from hfbench.doctor.devices import LIMIT, fine, named, once, seen_on
from hfbench.doctor.system import System
from hfbench.gpu.reading import known


@check("cards.persistence", "persistence mode", limit=LIMIT)
def persistence(system: System) -> Outcome:
    """Without it the driver forgets an idle card, and the first call of a program waits for seconds."""
    off = [each for each in system.gpus.devices if each.persistence is False]
    if off:
        return warning(
            f"{named(off)}: off",
            *(seen_on(each, "persistence mode off") for each in off),
            remedy="start nvidia-persistenced, or `sudo nvidia-smi -pm 1`",
        )
    return fine(system, "on")


@check("cards.mode", "compute mode", limit=LIMIT)
def mode(system: System) -> Outcome:
    """An exclusive card takes one process and refuses the second; a prohibited one takes none."""
    modes = {each.index: known(each.compute_mode) for each in system.gpus.devices}
    prohibited = [each for each in system.gpus.devices if modes[each.index] == "prohibited"]
    exclusive = [each for each in system.gpus.devices if (modes[each.index] or "").startswith("exclusive")]
    seen = [seen_on(each, f"compute mode {modes[each.index]}") for each in (*prohibited, *exclusive)]
    remedy = "set it back with `sudo nvidia-smi -c DEFAULT`"
    if prohibited:
        return error(f"{named(prohibited)}: takes no program", *seen, remedy=remedy)
    if exclusive:
        return warning(
            f"{named(exclusive)}: one process at a time", *seen, remedy=f"{remedy}, unless it is so on purpose"
        )
    return fine(system, "default")


@check("cards.mig", "MIG", limit=LIMIT)
def mig(system: System) -> Outcome:
    """A card that is divided and has no slice offers nothing to CUDA."""
    empty = [each for each in system.gpus.devices if each.mig.enabled is True and not known(each.mig.instances)]
    pending = [
        each
        for each in system.gpus.devices
        if isinstance(each.mig.pending, bool)
        and isinstance(each.mig.enabled, bool)
        and each.mig.pending != each.mig.enabled
    ]
    seen = [seen_on(each, f"MIG {each.mig.enabled}, pending {each.mig.pending}") for each in once(*empty, *pending)]
    if empty:
        return error(
            f"{named(empty)}: MIG is on and there is no instance",
            *seen,
            remedy="make one with `sudo nvidia-smi mig -cgi PROFILE -C`, or turn MIG off with `sudo nvidia-smi -mig 0`",
        )
    if pending:
        return warning(f"{named(pending)}: a change of MIG waits", *seen, remedy="reset the card when it is idle")
    return fine(system, "off, or with instances")


@check("cards.power", "power limit", limit=LIMIT)
def power(system: System) -> Outcome:
    """A cap below the card's own makes it slower than its like in every benchmark."""
    capped = []
    for each in system.gpus.devices:
        own, now = system.default_power.get(each.index), known(each.power_limit)
        if isinstance(own, float) and now is not None and now < own - 1:
            capped.append((each, now, own))
    if capped:
        return warning(
            f"{named([each for each, _, _ in capped])}: {capped[0][1]:.0f} W of {capped[0][2]:.0f} W",
            *(seen_on(each, f"limit {now:.0f} W, default {own:.0f} W") for each, now, own in capped),
            remedy="set it back with `sudo nvidia-smi -pl WATTS`, unless the rack asks for it",
        )
    if system.gpus.devices and not any(isinstance(own, float) for own in system.default_power.values()):
        return unknown("the driver does not tell the default limit", saw("no default limit", "NVML"))
    return fine(system, "at the card's own")


@check("cards.pcie", "PCIe link", limit=LIMIT)
def pcie(system: System) -> Outcome:
    """A card in the wrong slot, or badly seated, loads models at half the speed or less."""
    narrow, slow, seen = [], [], []
    for each in system.gpus.devices:
        link = each.pcie
        width, most = known(link.width), known(link.width_max)
        generation, best = known(link.generation), known(link.generation_max)
        if width is not None and most is not None and width < most:
            narrow.append(each)
        busy = (known(each.utilization.gpu) or 0) > 0  # an idle card lowers its generation to save power
        if generation is not None and best is not None and generation < best and busy:
            slow.append(each)
        if each in narrow or each in slow:
            seen.append(
                seen_on(
                    each, f"x{width or 0:.0f} of x{most or 0:.0f}, generation {generation or 0:.0f} of {best or 0:.0f}"
                )
            )
    if narrow or slow:
        what = "fewer lanes than it can" if narrow else "a lower generation than it can, while busy"
        return warning(
            f"{named(narrow or slow)}: {what}",
            *seen,
            remedy="look at the slot and the riser, and at the settings of the firmware",
        )
    return fine(system, "all lanes")
