"""The processors: how many this process may use, how fast they may run, and what the threads are told."""

from __future__ import annotations

import math
import re

from hfbench.doctor.check import Outcome, check, error, ok, saw, some, unknown, warning
from hfbench.doctor.system import System

STATUS = "/proc/self/status"
ONLINE = "/sys/devices/system/cpu/online"
NODES = "/sys/devices/system/node"
CPUS = "/sys/devices/system/cpu"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TOKENIZERS_PARALLELISM")


def listed(text: str) -> set[int]:
    """`0-3,8` as numbers."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def allowed(system: System) -> set[int]:
    """The processors the kernel may run this process on; those of the machine where it does not tell."""
    told = re.search(r"^Cpus_allowed_list:\s*(\S+)", system.text(STATUS) or "", re.MULTILINE)
    return listed(told[1]) if told else listed(system.text(ONLINE) or "")


@check("processor.group", "processors of the group")
def group(system: System) -> Outcome:
    """A quota below the processors a program sees: it starts a thread for each, and they wait for one another."""
    bound, cpus = system.cgroups.processors, len(allowed(system))
    seen = [saw(f"{cpus} processors", STATUS)] + ([saw(f"{bound.value:g}", bound.where)] if bound else [])
    if not cpus:
        return unknown("the kernel does not tell the processors", saw("no Cpus_allowed_list", STATUS))
    if bound is not None and bound.value < cpus:
        return warning(
            f"{bound.value:g} of the {cpus} that programs see",
            *seen,
            remedy=f"set OMP_NUM_THREADS={max(1, math.floor(bound.value))}, or ask for more: --cpus of the container",
        )
    return ok(f"all {cpus}", *seen)


@check("processor.affinity", "processors and nodes")
def affinity(system: System) -> Outcome:
    """A process bound to a part of the machine may be far from its card and its memory."""
    mine, online = allowed(system), listed(system.text(ONLINE) or "")
    nodes = {
        name: listed(system.text(f"{NODES}/{name}/cpulist") or "")
        for name in system.names(NODES)
        if re.fullmatch(r"node\d+", name)
    }
    seen = [saw(f"{len(mine)} of {len(online)}", STATUS), saw(f"{len(nodes)} memory nodes", NODES)]
    missed = [name for name, cpus in nodes.items() if cpus and not cpus & mine]
    if online and mine and len(mine) < len(online):
        far = f", none of {some(missed)}" if missed else ""
        return warning(
            f"bound to {len(mine)} of {len(online)} processors{far}",
            *seen,
            remedy="see who bound it (taskset, numactl, the scheduler); on several sockets choose the one of the card",
        )
    return ok(f"all {len(mine)}", *seen)


@check("processor.governor", "clock of the processors")
def governor(system: System) -> Outcome:
    """Under `powersave` the clock follows the load, and launch-bound steps are slower and vary."""
    folders = [name for name in system.names(CPUS) if re.fullmatch(r"cpu\d+", name)]
    chosen = {(system.text(f"{CPUS}/{name}/cpufreq/scaling_governor") or "").strip() for name in folders} - {""}
    seen = saw(some(sorted(chosen)) or "absent", f"{CPUS}/cpu*/cpufreq/scaling_governor")
    driver = (system.text(f"{CPUS}/cpu0/cpufreq/scaling_driver") or "").strip()
    if "powersave" in chosen and driver not in ("intel_pstate", "amd-pstate-epp"):
        return warning("powersave", seen, remedy="sudo cpupower frequency-set -g performance")
    if chosen & {"powersave", "conservative"}:
        remedy = "for steady measurements: sudo cpupower frequency-set -g performance"
        return warning(f"{some(sorted(chosen))} of {driver}", seen, saw(driver, "scaling_driver"), remedy=remedy)
    return ok(some(sorted(chosen)) or "not told here, as in most virtual machines", seen)


@check("processor.threads", "thread variables")
def threads(system: System) -> Outcome:
    """A number that is none is ignored, and one beyond the processors makes all of them wait."""
    told = {name: system.variable(name) for name in THREADS if system.variable(name)}
    seen = [saw(value, name) for name, value in told.items()]
    cpus = len(allowed(system))
    for name, value in told.items():
        if name == "TOKENIZERS_PARALLELISM":
            continue
        parts = value.split(",")  # OpenMP takes a list, one number a level
        if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            return error(
                f"{name} is {value!r}, no number", *seen, remedy=f"set it to a number up to {cpus}, or unset it"
            )
        if cpus and int(parts[0]) > cpus:
            return warning(
                f"{name} is {value}, of {cpus} processors", *seen, remedy=f"set it to at most {cpus}, or unset it"
            )
        if int(parts[0]) == 1 and cpus > 1:
            return warning(
                f"{name} is 1, of {cpus} processors", *seen, remedy="unset it, unless each process is to use one"
            )
    return ok("fit the processors" if told else "none is set", *seen)
