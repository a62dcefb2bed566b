"""A real Ray cluster of two nodes on this machine: a head without GPUs, and a second raylet with one, by its word."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemons import CannotBeHad, Daemons, descendants, free_ports, kill, listening, processes_with, until

from hfbench.jobs.directory import try_lock

NODES = ("head", "second")
TURN = 150.0
"""Seconds to wait for the end of another run's cluster."""
STORE = str(80 << 20)
"""Bytes of the object store of each node, the least Ray takes."""


TOYS = Path(__file__).parents[3] / "toys"
ENV = {
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
    "PYTHONUNBUFFERED": "1",
    "OMP_NUM_THREADS": "1",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
"""Of the nodes, and so of what runs there: a lost node is seen within seconds. gRPC's fork handlers are off: now and
then the server that Ray starts for a new client died at once with them, though they are not proven to be the cause.
"""


class RayLab:
    """The cluster; `address` is what `--on` takes. Only its own processes are ended: `ray stop` would end every Ray
    of the machine.
    """

    def __init__(self) -> None:
        self._program = Path(sys.executable).with_name("ray")
        if not self._program.exists():
            raise CannotBeHad("Ray is not installed")
        self._daemons = Daemons("ray")
        self.folder = self._daemons.folder
        self.hidden = self.folder / "hidden"
        """A folder that the nodes do not see, as if their disks were not shared; `hides` tells whether that worked."""
        self.far_home = self.folder / "far-home"
        self._gcs, self._client = free_ports(2)
        self.address = f"ray://127.0.0.1:{self._client}"
        self.gcs = f"127.0.0.1:{self._gcs}"

    def begin(self) -> None:
        """Start both nodes."""
        self.hidden.mkdir()
        (self.hidden / "seen-from-here").touch()
        self.hides = subprocess.run(self._apart("true"), capture_output=True, check=False).returncode == 0
        self.start_head()
        self.start_second()

    def start_head(self) -> None:
        """Start the head node with its client server, two CPUs, and no GPU."""
        ports = ("--port", str(self._gcs), "--ray-client-server-port", str(self._client))
        self._start(
            "head", "--head", *ports, "--include-dashboard=false", "--temp-dir", str(self.folder), "--num-gpus=0"
        )
        until(lambda: listening(self._client), self._trouble, patience=60)

    def start_second(self) -> None:
        """Start the second node, with two CPUs and one GPU that is only told of."""
        self._start("second", "--address", self.gcs, "--num-gpus=1", "--resources", '{"second": 1}')
        until(lambda: "Ray runtime started" in self._daemons.told("second"), self._trouble, patience=60)

    def kill_node(self, name: str) -> None:
        """Lose a node at once, with all that runs on it."""
        doomed = descendants(self._daemons.pid(name))
        kill(doomed)
        self._daemons.stop(name, signal.SIGKILL)

    def node_of(self, pid: int) -> str:
        """The node that a process runs on."""
        return next(name for name in NODES if pid in descendants(self._daemons.pid(name)))

    def mend(self) -> None:
        """Start what a test has taken away."""
        if not self._daemons.alive("head"):
            if self._daemons.alive("second"):
                self.kill_node("second")
            self.start_head()
        if not self._daemons.alive("second"):
            self.start_second()

    def close(self) -> None:
        """End both nodes and what they left."""
        for name in NODES:
            if self._daemons.alive(name):
                self.kill_node(name)  # which takes seconds to go by itself
        kill({*processes_with(self.folder), *processes_with(self.gcs)})
        self._daemons.close()

    def _start(self, name: str, *words: str) -> None:
        usual = ("--block", "--node-ip-address=127.0.0.1", "--num-cpus=2", f"--object-store-memory={STORE}")
        quiet = ("--disable-usage-stats", "--log-color=false", "--include-log-monitor=false")
        (self.folder / f"{name}.log").unlink(missing_ok=True)  # it tells when this one is ready
        start = [str(self._program), "start", *words, *usual, *quiet]
        env = {**ENV, "HFBENCH_HOME": str(self.far_home), "HFBENCH_ACTIONS": str(TOYS)}
        self._daemons.start(name, self._apart(*start) if self.hides else start, env)

    def _apart(self, *words: str) -> list[str]:
        """A command that sees an empty disk in the place of the hidden folder."""
        mount = f'mount -t tmpfs tmpfs {self.hidden} && test ! -e {self.hidden}/seen-from-here && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", mount, "sh", *words]

    def _trouble(self) -> str:
        return "Ray does not start here: " + "; ".join(f"{name}: {self._daemons.told(name)}" for name in NODES)


@contextmanager
def ray() -> Iterator[RayLab]:
    """The cluster, up; CannotBeHad where it cannot run, or while another of this machine does for too long."""
    with _alone_on_the_machine():
        lab = RayLab()
        try:
            lab.begin()
            yield lab
        finally:
            lab.close()


@contextmanager
def _alone_on_the_machine() -> Iterator[None]:
    """Two heads hand out the same ports to the servers of their clients, and a client may get the other's: a job was
    seen to read a folder that all nodes of its own cluster hide.
    """
    with (Path(tempfile.gettempdir()) / "hfb-ray-lab.lock").open("w") as file:
        end = time.monotonic() + TURN
        while not try_lock(file.fileno(), fcntl.LOCK_EX):
            if time.monotonic() > end:
                raise CannotBeHad(f"another Ray of such tests has run for {TURN:.0f} s on this machine")
            time.sleep(0.5)
        yield
