"""A real Slurm of two nodes on this machine: n1 with two GPUs called a100, n2 with one called h100, all plain files."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from daemons import CannotBeHad, Daemons, find_program, free_ports, kill, need, parent, processes_with, until

NODES = ("n1", "n2")
EPILOG = """#!/bin/sh
[ -e "{folder}/linger" ] && sleep 2
exit 0
"""
GRES = """
NodeName=n1 Name=gpu Type=a100 File={folder}/gpu[0-1]
NodeName=n2 Name=gpu Type=h100 File={folder}/gpu2
"""
CONF = """
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SlurmdParameters=config_overrides
SlurmdTimeout=3
MessageTimeout=3
KillWait=3
Epilog={folder}/epilog
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=8000 Gres=gpu:a100:2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=8000 Gres=gpu:h100:1
PartitionName=debug Nodes=n1,n2 Default=YES MaxTime=60 PriorityTier=1 State=UP
PartitionName=urgent Nodes=n1,n2 PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=closed Nodes=n2 State=DOWN
"""


class SlurmLab:
    """The cluster. Its clients find it by SLURM_CONF; `env` holds what they need."""

    def __init__(self) -> None:
        need("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
        if os.geteuid() != 0:
            raise CannotBeHad("only root can start jobs through its slurmd")
        self._daemons = Daemons("slurm")
        self.folder = self._daemons.folder
        self.conf = self.folder / "slurm.conf"
        self.env = {"SLURM_CONF": str(self.conf)}

    def begin(self) -> None:
        """Write the configuration and start munged, slurmctld and both slurmd."""
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        for name in ("gpu0", "gpu1", "gpu2"):
            (self.folder / name).touch()
        told = {"folder": self.folder, "host": socket.gethostname().partition(".")[0], "user": getpass.getuser()}
        self.conf.write_text(CONF.format(**told, ports=free_ports(3)))
        (self.folder / "gres.conf").write_text(GRES.format(**told))
        epilog = self.folder / "epilog"
        epilog.write_text(EPILOG.format(**told))
        epilog.chmod(0o755)
        self._start_munged()
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        until(lambda: self.states() == {"n1": "idle", "n2": "idle"}, self._trouble)

    def start_controller(self) -> None:
        """Start slurmctld, and wait until it answers."""
        self._daemons.start("slurmctld", [_path("slurmctld"), "-D", "-f", self.conf], self.env)
        until(lambda: self.call("scontrol", "ping").returncode == 0, self._trouble)

    def stop_controller(self, signum: signal.Signals = signal.SIGTERM) -> None:
        """Stop slurmctld; jobs go on running."""
        self._daemons.stop("slurmctld", signum)

    def start_node(self, node: str) -> None:
        """Start the slurmd of a node; `until_idle` waits until it takes jobs."""
        self._daemons.start(node, [_path("slurmd"), "-D", "-f", self.conf, "-N", node], self.env)

    def kill_node(self, node: str) -> None:
        """Lose a node: its slurmd and all that runs on it, at once. slurmctld sees it some ten seconds later."""
        self._daemons.stop(node, signal.SIGKILL)
        work = processes_with(f"SLURMD_NODENAME={node}\0", self.conf)
        kill({parent(pid) for pid in work} - set(work) - {1})  # slurmstepd first: it would report how the work ended
        kill(work)

    def kill_slurmd(self, node: str) -> None:
        """Kill the slurmd of a node with -9; its jobs go on running."""
        self._daemons.stop(node, signal.SIGKILL)

    def mend(self) -> None:
        """Start what is down, end all jobs, and wait until both nodes take new ones: for the end of a test."""
        if not self._daemons.alive("slurmctld"):
            self.start_controller()
        for node in NODES:
            if not self._daemons.alive(node):
                self.start_node(node)
        (self.folder / "linger").unlink(missing_ok=True)
        self.call("scancel", "--user", getpass.getuser())
        until(lambda: not self.call("squeue", "-h").stdout.strip(), self._trouble)
        for node in NODES:
            if self.states().get(node) not in ("idle", "comp"):
                self.call("scontrol", "update", f"nodename={node}", "state=resume")
        until(lambda: self.states() == {"n1": "idle", "n2": "idle"}, self._trouble)

    def linger(self) -> None:
        """Let nodes take two seconds to clear away what a job left, in which Slurm says that it completes."""
        (self.folder / "linger").touch()

    def hurry(self) -> None:
        """Let what waits begin now: after a requeue Slurm waits two minutes."""
        for job in self.call("squeue", "-h", "--array", "-t", "PD", "-o", "%i").stdout.split():
            self.call("scontrol", "update", f"jobid={job}", "starttime=now")

    def call(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a client of Slurm against this cluster."""
        env = {**os.environ, **self.env}
        return subprocess.run([program, *words], env=env, capture_output=True, text=True, timeout=30, check=False)

    def states(self) -> dict[str, str]:
        """`idle`, `alloc`, `mix`, `down`, ... of each node."""
        lines = self.call("sinfo", "-h", "-N", "-o", "%N %t").stdout.splitlines()
        return dict(line.rstrip("*").split() for line in lines)

    def close(self) -> None:
        """End all jobs and daemons, and whatever they left."""
        if self._daemons.alive("slurmctld"):
            self.call("scancel", "--user", getpass.getuser())
        left = processes_with(self.conf)
        self._daemons.close()
        kill(left)

    def _start_munged(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {"key-file": key, "socket": "munge.socket", "pid-file": "munged.pid", "seed-file": "munge.seed"}
        words = [f"--{name}={self.folder / name_or_path}" for name, name_or_path in files.items()]
        self._daemons.start("munged", [_path("munged"), "--foreground", "--force", *words])
        until((self.folder / "munge.socket").exists, self._trouble)

    def _trouble(self) -> str:
        told = {name: self._daemons.told(name) for name in ("munged", "slurmctld", *NODES)}
        return "Slurm does not start here: " + "; ".join(f"{name}: {text}" for name, text in told.items() if text)


@contextmanager
def slurm() -> Iterator[SlurmLab]:
    """The cluster, up and idle; CannotBeHad where it cannot run."""
    lab = SlurmLab()
    try:
        lab.begin()
        yield lab
    finally:
        lab.close()


def _path(program: str) -> str:
    return find_program(program) or program
