"""The system's own ssh, as its user has set it up: words of a command, and what its complaints mean."""

from __future__ import annotations

import hashlib
import os
import subprocess
from functools import lru_cache
from pathlib import Path

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.jobs.executors.base import ExecutorTrouble

CONNECTING = 10
"""Seconds for a connection, unless the user's configuration says otherwise."""
PERSIST = 60
"""Seconds a shared connection outlives its last use."""
FAILED = 255
"""The status of ssh for its own troubles."""


@lru_cache(maxsize=64)
def ssh_words(host: str) -> tuple[str, ...]:
    """`ssh` with options, up to the host. The user's own go first; but it never asks for anything: nobody could answer.

    MissingError without ssh, UsageError where its configuration is wrong.
    """
    own = _configured(host)
    options = ["BatchMode=yes"]
    if own.get("connecttimeout", "none") == "none":
        options.append(f"ConnectTimeout={CONNECTING}")
    if own.get("serveraliveinterval", "0") == "0":
        options += ["ServerAliveInterval=5", "ServerAliveCountMax=3"]
    if own.get("controlpath", "none") == "none" and (folder := _sockets()):
        # with the name that was asked for: another one for the same box may have rules of its own
        name = hashlib.sha256(host.encode()).hexdigest()[:8]
        options += ["ControlMaster=auto", f"ControlPath={folder}/{name}-%C", f"ControlPersist={PERSIST}"]
    return ("ssh", "-T", *(word for option in options for word in ("-o", option)))


def run_there(host: str, command: str, *, patience: float) -> str:
    """What a command prints over there; ExecutorTrouble, or what `meaning` makes of a complaint, when it fails."""
    words = [*ssh_words(host), "--", host, command]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExecutorTrouble(f"{host} has not answered for {patience:.0f} s") from None
    if done.returncode:
        raise meaning(host, done.returncode, done.stderr)
    return done.stdout


def meaning(host: str, status: int, said: str) -> HfbenchError:
    """What ssh, or the shell over there, means: trouble that may pass, or what its user has to do first."""
    text = " ".join(said.split())
    low = text.lower()
    if status in (126, 127):
        remedy = f"name one that is there: ssh:{host},python=/path/to/python"
        return MissingError(f"the interpreter cannot be started over there: {text}", where=f"ssh:{host}", remedy=remedy)
    if status != FAILED:
        what = text or f"status {status}"
        return MissingError(f"the command fails over there: {what}", where=f"ssh:{host}", remedy=f"try: ssh {host}")
    if "identification has changed" in low:
        remedy = f"find out why, then: ssh-keygen -R {host} and ssh {host}"
        return UsageError(f"the key of {host} is another than it was", where=f"ssh:{host}", remedy=remedy)
    if "host key verification failed" in low or "no matching host key" in low:
        remedy = f"connect once by hand, and check its fingerprint: ssh {host}"
        return UsageError(f"the key of {host} is not known here", where=f"ssh:{host}", remedy=remedy)
    if "permission denied" in low or "too many authentication failures" in low:
        remedy = f"let a key do: ssh-copy-id {host}, and ssh-add where the key has a passphrase"
        return UsageError(f"{host} asks for a password, or knows none of your keys", where=f"ssh:{host}", remedy=remedy)
    if "could not resolve" in low or "bad configuration option" in low:
        return UsageError(text.removeprefix("ssh: "), where=f"ssh:{host}", remedy="check its name and ~/.ssh/config")
    return ExecutorTrouble(f"{host} cannot be reached: {text.removeprefix('ssh: ') or 'the connection ended'}")


def _configured(host: str) -> dict[str, str]:
    """What ssh would do for a host, by its own account."""
    try:
        done = subprocess.run(
            ["ssh", "-G", "--", host], capture_output=True, text=True, errors="replace", timeout=CONNECTING, check=False
        )
    except FileNotFoundError:
        raise MissingError("there is no ssh on this machine", where=f"ssh:{host}", remedy="install openssh") from None
    except subprocess.TimeoutExpired:
        raise ExecutorTrouble("ssh does not tell its configuration") from None
    if done.returncode:
        told = " ".join(done.stderr.split())
        raise UsageError(f"the configuration of ssh is wrong: {told}", where=f"ssh:{host}", remedy="mend ~/.ssh/config")
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def _sockets() -> str:
    """A folder for sockets of shared connections that is this user's alone; empty where there can be none."""
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    folder = Path(base) / f"hfbench-ssh-{os.getuid()}"  # short: the path of a socket has 107 bytes
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        told = folder.lstat()
    except OSError:
        return ""
    ours = told.st_uid == os.getuid() and not told.st_mode & 0o077 and not folder.is_symlink()
    return str(folder) if ours and len(str(folder)) < 38 else ""
