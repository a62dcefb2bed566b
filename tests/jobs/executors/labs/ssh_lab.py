"""A real sshd on the loopback with keys and configurations of its own, and an `ssh` that knows its hosts."""

from __future__ import annotations

import getpass
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from daemons import Daemons, descendants, find_program, free_ports, kill, listening, need, until

SERVER = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
PidFile {folder}/{name}.pid
AuthorizedKeysFile {folder}/authorized_keys
PubkeyAuthentication {keys}
PasswordAuthentication {passwords}
KbdInteractiveAuthentication no
PermitRootLogin yes
StrictModes no
UseDNS no
MaxStartups 100
Subsystem sftp internal-sftp
{env}
"""
CLIENT = """
Host box-password
    Port {ports[1]}
Host box-stranger
    UserKnownHostsFile /dev/null
Host box-closed
    Port {ports[2]}
Host box box-*
    HostName 127.0.0.1
    User {user}
    Port {ports[0]}
    IdentityFile {folder}/user_key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    LogLevel ERROR
"""


class SshLab:
    """The second box, which is this one: `box` takes the key, `box-password` only passwords; nobody knows the key of
    `box-stranger`, and nobody listens at `box-closed`.

    `bin` goes first on PATH: its `ssh` is the system's with `-F config`, as ssh looks for a user's own in the home
    folder that the machine's list of users names. What runs over there has its HFBENCH_HOME below `folder`.
    """

    def __init__(self) -> None:
        need("sshd", "ssh", "ssh-keygen", "rsync")
        self._daemons = Daemons("ssh")
        self.folder = self._daemons.folder
        self.bin = self.folder / "bin"
        self.config = self.folder / "config"
        self.far_home = self.folder / "far-home"
        home = self.folder / "home"  # what the shell of this machine's user does at its start is no part of a test
        home.mkdir()
        self._far_env = {"HFBENCH_HOME": str(self.far_home), "HOME": str(home)}
        self._ports = free_ports(3)

    def begin(self) -> None:
        """Make the keys and configurations and start both servers."""
        for name in ("host_key", "user_key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        (self.folder / "user_key.pub").rename(self.folder / "authorized_keys")
        host_key = (self.folder / "host_key.pub").read_text()
        known = [f"[127.0.0.1]:{port} {host_key}" for port in self._ports]
        (self.folder / "known_hosts").write_text("".join(known))
        told = {"folder": self.folder, "user": getpass.getuser(), "ports": self._ports}
        self.config.write_text(CLIENT.format(**told))
        self._write_ssh()
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # into which it gives up its rights
        self.start()
        self._serve("passwords", self._ports[1])

    def start(self, far_env: Mapping[str, str] | None = None) -> None:
        """Start the server that takes the key; `far_env` are more variables of what it runs."""
        self._far_env.update(far_env or {})
        self._serve("keys", self._ports[0])

    def stop(self) -> None:
        """Let the box go from the network: the server and all connections end, what they started may go on."""
        self.cut()
        self._daemons.stop("keys", signal.SIGKILL)

    def cut(self) -> None:
        """Break all open connections; the server takes new ones."""
        listener = self._daemons.pid("keys")
        kill(pid for pid in descendants(listener) if pid != listener and _is_sshd(pid))

    def mend(self) -> None:
        """Start the server again where a test has stopped it."""
        if not self._daemons.alive("keys"):
            self.start()

    def close(self) -> None:
        """Stop both servers and their connections."""
        for name in ("keys", "passwords"):
            if self._daemons.alive(name):
                kill(descendants(self._daemons.pid(name))[:-1])
        self._daemons.close()

    def _serve(self, name: str, port: int) -> None:
        keys = name == "keys"
        env = " ".join(f"{variable}={shlex.quote(value)}" for variable, value in self._far_env.items())
        text = SERVER.format(
            folder=self.folder,
            name=name,
            port=port,
            keys="yes" if keys else "no",
            passwords="no" if keys else "yes",
            env=f"SetEnv {env}",
        )
        path = self.folder / f"sshd-{name}.conf"
        path.write_text(text)
        sshd = find_program("sshd") or "sshd"  # by its whole path: it starts itself anew for each connection
        self._daemons.start(name, [sshd, "-D", "-e", "-f", path])
        until(lambda: listening(port), lambda: f"sshd does not start here: {self._daemons.told(name)}")

    def _write_ssh(self) -> None:
        self.bin.mkdir()
        program = self.bin / "ssh"
        program.write_text(f'#!/bin/sh\nexec {find_program("ssh")} -F {self.config} "$@"\n')
        program.chmod(0o755)


@contextmanager
def ssh() -> Iterator[SshLab]:
    """The box, up; CannotBeHad where it cannot run."""
    lab = SshLab()
    try:
        lab.begin()
        yield lab
    finally:
        lab.close()


def _is_sshd(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip().startswith("sshd")
    except OSError:
        return False
