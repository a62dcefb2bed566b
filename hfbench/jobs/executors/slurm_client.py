"""Calls the programs of Slurm, and turns what they complain of into trouble that passes or a sentence that does not."""

from __future__ import annotations

import os
import subprocess

from hfbench.errors import MissingError, UsageError
from hfbench.jobs.executors.base import ExecutorTrouble

PATIENCE = 15.0
"""Seconds for an answer of slurmctld, which its own programs wait for as long as MessageTimeout says."""
PASSING = (
    "unable to contact slurm controller",
    "connection refused",
    "connection timed out",
    "socket timed out",
    "zero bytes were transmitted",
    "backup controller",
    "munge",
    "authentication",
    "temporarily",
    "unable to resolve",
    "slurm_persist_conn_open",
)
"""What is said while the controller, its network or munge is away."""
OPTIONS = ("SBATCH_", "SQUEUE_", "SINFO_", "SCANCEL_", "SCONTROL_", "SALLOC_")
"""What variables begin with by which these programs take options: one would hide jobs, or ask for another place."""
WHOLE = {"LC_ALL": "C", "SLURM_BITSTR_LEN": "0"}
"""Complaints in English, and the tasks of an array in full: else scontrol cuts their numbers off after 64 bytes."""
UNCONFIGURED = "could not establish a configuration source"
FORGOTTEN = "invalid job id"
"""What is said of a job that ended longer ago than MinJobAge, or that never was."""


class Refused(UsageError):
    """Slurm does not take the request."""


def call(program: str, *words: str, stdin: str = "", patience: float = PATIENCE) -> str:
    """What a program of Slurm prints. ExecutorTrouble where asking again may help, Refused with its own words else."""
    try:
        done = subprocess.run(
            [program, *words],
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            env=_environment(),
            cwd=_folder(),
            check=False,
        )
    except FileNotFoundError:
        raise MissingError(
            f"there is no {program} on this machine",
            where="slurm",
            remedy="run hfbench where jobs of the cluster are submitted, or use ssh:HOST",
        ) from None
    except subprocess.TimeoutExpired:
        raise ExecutorTrouble(f"slurmctld has not answered {program} for {patience:.0f} s") from None
    except OSError as error:
        raise ExecutorTrouble(f"{program} cannot be started: {error.strerror}") from error
    if done.returncode == 0:
        return done.stdout
    told = _said(done.stderr or done.stdout, program)
    if UNCONFIGURED in told.lower():
        remedy = "run hfbench where its slurm.conf is, or name that with SLURM_CONF"
        raise MissingError("this machine belongs to no Slurm cluster", where="slurm", remedy=remedy)
    if any(each in told.lower() for each in PASSING):
        raise ExecutorTrouble(f"slurmctld does not answer: {told}")
    raise Refused(told or f"{program} failed with status {done.returncode}", where="slurm")


def _environment() -> dict[str, str]:
    """Variables for a program of Slurm, with those that say which cluster; sbatch hands them to the job."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OPTIONS)}
    return {**kept, **WHOLE}


def _folder() -> str | None:
    """A folder to run in: the current one, unless it was deleted since, which sbatch does not bear."""
    try:
        os.getcwd()
    except OSError:
        return "/"
    return None


def _said(text: str, program: str) -> str:
    """A complaint of Slurm without its prefixes, on one line."""
    lines = []
    for line in text.splitlines():
        for prefix in (f"{program}: ", "error: ", "fatal: ", "allocation failure: ", "Batch job submission failed: "):
            line = line.removeprefix(prefix)
        if line.strip() and line.strip() not in lines:
            lines.append(line.strip())
    return "; ".join(lines)
