"""Resource limits of this process, which those it starts inherit."""

from __future__ import annotations

from hfbench.doctor.check import Outcome, check, ok, saw, unknown, warning
from hfbench.doctor.limits import UNLIMITED, Limit
from hfbench.doctor.system import System
from hfbench.units import show_bytes

FILE = "/proc/self/limits"
FILES, PROCESSES = 4096, 4096
"""Below these a sharded checkpoint with loader workers, or a compile with its pool, has been seen to fail."""
CORE_PATTERN = "/proc/sys/kernel/core_pattern"
INFINIBAND = "/sys/class/infiniband"


@check("limits.files", "open files")
def files(system: System) -> Outcome:
    """Shards, sockets and workers each take descriptors: too many open files."""
    return _at_least(system, "Max open files", FILES, "ulimit -n 65536")


@check("limits.processes", "processes and threads")
def processes(system: System) -> Outcome:
    """Every thread counts: a compile pool beside OpenMP asks for hundreds."""
    return _at_least(system, "Max processes", PROCESSES, "ulimit -u 65536")


@check("limits.locked", "locked memory")
def locked(system: System) -> Outcome:
    """RDMA registers memory by locking it; NCCL over InfiniBand fails at the limit."""
    limit = system.limits.get("Max locked memory")
    if limit is None:
        return unknown("the kernel does not tell", saw("no such row", FILE))
    adapters = system.names(INFINIBAND)
    seen = (saw(_bytes(limit), FILE), saw(", ".join(adapters) or "no adapter", INFINIBAND))
    if adapters and limit.soft != UNLIMITED:
        return warning(
            f"{_bytes(limit)} and there is InfiniBand",
            *seen,
            remedy="ulimit -l unlimited, or memlock in /etc/security/limits.d; in a container --ulimit memlock=-1",
        )
    return ok(_bytes(limit), *seen)


@check("limits.core", "core dumps")
def core(system: System) -> Outcome:
    """A process that dies with a model in memory writes all of it to the disk."""
    limit = system.limits.get("Max core file size")
    if limit is None:
        return unknown("the kernel does not tell", saw("no such row", FILE))
    pattern = (system.text(CORE_PATTERN) or "").strip()
    seen = (saw(_bytes(limit), FILE), saw(pattern or "not told", CORE_PATTERN))
    if limit.soft != 0 and not pattern.startswith("|"):
        return warning(
            f"{_bytes(limit)}, written as {pattern or 'core'}",
            *seen,
            remedy="ulimit -c 0, unless you want the dumps and the disk has room for host memory",
        )
    return ok("none are written" if limit.soft == 0 else "handed to a program", *seen)


def _at_least(system: System, name: str, least: int, command: str) -> Outcome:
    limit = system.limits.get(name)
    if limit is None:
        return unknown("the kernel does not tell", saw("no such row", FILE))
    seen = saw(f"{_number(limit.soft)}, at most {_number(limit.hard)}", FILE)
    if limit.soft != UNLIMITED and limit.soft < least:
        may = limit.hard == UNLIMITED or limit.hard >= least
        how = command if may else f"ask for more in /etc/security/limits.d, then {command}"
        return warning(_number(limit.soft), seen, remedy=how)
    return ok(_number(limit.soft), seen)


def _number(value: int) -> str:
    return "unlimited" if value == UNLIMITED else f"{value:,}"


def _bytes(limit: Limit) -> str:
    return "unlimited" if limit.soft == UNLIMITED else show_bytes(limit.soft)
