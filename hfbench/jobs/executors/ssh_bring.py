"""Brings what a job made on a second box, by rsync or by tar; one file that cannot come does not hold up the rest."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.errors import FULL
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.executors.base import ExecutorTrouble
from hfbench.jobs.executors.ssh_client import FAILED, ssh_words
from hfbench.jobs.executors.ssh_session import far_command
from hfbench.text import printable

STAYS = (
    "events.jsonl",
    "output.log",
    "request.json",
    "cancel.json",
    "lock",
    "reserve",
    "boot",
    "executor.json",
    "keeper.log",
)
"""Files of the far folder that are not brought over: they come as frames, or are of either side's own."""
SOME_FAILED = (23, 24)
"""Status of rsync when it has brought all but some files."""
TAR_COMPLAINS = (1, 2)
"""The same of tar, whose archive is whole."""
NO_ROOM = ("no space left", "quota exceeded", "disk quota")
SKIPPED = re.compile(r'skipping non-regular file "(.*)"')
SHOWN = 20
"""Names told in a log, of each kind."""


@dataclass(frozen=True)
class LeftBehind:
    """What did not come: links and other entries that are no files, and complaints about those that failed."""

    folder: str = ""
    no_files: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """It in words, for the job's log."""
        told = [
            f"hfbench: not brought over, as it is no plain file: {printable(name)}" for name in self.no_files[:SHOWN]
        ]
        told += [f"hfbench: could not be brought over: {printable(what)}" for what in self.failed[:SHOWN]]
        if more := max(0, len(self.no_files) - SHOWN) + max(0, len(self.failed) - SHOWN):
            told.append(f"hfbench: and {more} more")
        if self.failed:
            told.append(f"hfbench: what did not come is left in {self.folder}")
        return told


def bring(host: str, folder: str, job: JobDirectory, *, rsync: bool) -> LeftBehind:
    """Copy result, environment and artifacts from a far folder; `rsync` says whether it is there.

    ExecutorTrouble when that has to be tried again: the connection was cut, or the disk here is full.
    """
    if rsync and shutil.which("rsync"):
        no_files, failed = _by_rsync(host, folder, job)
    else:
        no_files, failed = _by_tar(host, folder, job)
    return LeftBehind(f"{host}:{folder}", tuple(no_files), tuple(failed))


def _by_rsync(host: str, folder: str, job: JobDirectory) -> tuple[list[str], list[str]]:
    excluded = [f"--exclude=/{name}" for name in STAYS]
    way = ["-e", shlex.join(ssh_words(host)), f"{host}:{folder}/", f"{job.path}/"]
    done = subprocess.run(
        ["rsync", "-rt", "--partial", "--protect-args", *excluded, *way],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    failed: list[str] = []
    if done.returncode:
        failed = _complaints(done.stderr)
        _unless_passing(failed, "rsync", done.returncode, SOME_FAILED)
    return SKIPPED.findall(done.stdout), failed


def _by_tar(host: str, folder: str, job: JobDirectory) -> tuple[list[str], list[str]]:
    excluded = [f"--exclude=./{name}" for name in STAYS]
    command = far_command("tar", "-C", folder, *excluded, "-cf", "-", ".")
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            [*ssh_words(host), "--", host, command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said
        ) as process,
    ):
        no_files, failed = list[str](), list[str]()
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    _unpack(archive, member, job, no_files, failed)
        except OSError as error:
            process.kill()
            raise ExecutorTrouble(f"the result cannot be brought over: {error}") from error
        except tarfile.TarError as error:
            failed.append(f"the archive is not whole: {error}")
        status = process.wait()
        said.seek(0)
        failed += _complaints(said.read().decode(errors="replace")) if status else []
    if status:
        _unless_passing(failed, "tar", status, TAR_COMPLAINS)
    return no_files, failed


def _unpack(
    archive: tarfile.TarFile, member: tarfile.TarInfo, job: JobDirectory, no_files: list[str], failed: list[str]
) -> None:
    """Write one entry of an archive below the job's folder, if it is a file or a folder; OSError on a full disk."""
    name = member.name.removeprefix("./")
    if not (member.isreg() or member.isdir() or member.islnk()):
        no_files.append(name)
        return
    try:
        archive.extract(member, job.path, filter="data")
    except (OSError, KeyError, tarfile.FilterError, tarfile.ExtractError) as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        failed.append(f"{name}: {error}")


def _unless_passing(complaints: Sequence[str], program: str, status: int, bearable: Sequence[int]) -> None:
    """ExecutorTrouble unless trying again would change nothing."""
    told = "; ".join(complaints[:3]) or f"status {status}"
    if status == FAILED:
        raise ExecutorTrouble("the result cannot be brought over: the connection was cut")
    if status not in bearable or any(word in told.lower() for word in NO_ROOM):
        raise ExecutorTrouble(f"the result cannot be brought over: {program}: {told}")


def _complaints(text: str) -> list[str]:
    """What a program said, without its own last word on it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [line for line in lines if not line.startswith(("rsync error:", "tar: Exiting"))]
