"""The executors by their kind; each is imported only when a job is to run there."""

from __future__ import annotations

from hfbench.jobs.executors.base import Executor
from hfbench.jobs.executors.spec import Where


def executor_of(where: Where) -> Executor:
    """The executor of a place that is not local."""
    match where.kind:
        case "slurm":
            from hfbench.jobs.executors.slurm import Slurm

            return Slurm(where)
        case "ray":
            from hfbench.jobs.executors.ray import Ray

            return Ray(where)
        case "ssh":
            from hfbench.jobs.executors.ssh import Ssh

            return Ssh(where)
    raise AssertionError(f"{where.kind} has no keeper")
