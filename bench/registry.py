"""CPU seconds a GiB of the hub for uploads and downloads by stock clients, beside nginx, cp, SHA-256 and Olah.

Without nginx, or where Olah cannot be installed, their claims are left out, and the script says so.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path

from claims import Claim, Measure, Record, finish, run
from hub_service import NGINX, Service, client_environment, cpu_of_group, olah, stock
from peers.installed import command_of

import hfbench

GIB, MIB = 1 << 30, 1 << 20
OLAH = "olah==0.5.4"
REPO = "team/large"
ADDRESS = f"/{REPO}/resolve/main/model.bin"
PARTS = 8
EDITS = 10
MANY, SLOW = 10_000, 200
AT_ONCE, SMALL = 50, 16 * MIB
SETTLED = 0.3
"""Seconds after a client ends until the server has done what it does after its answer."""


A_GIB = "s CPU a GiB"


DOWNLOAD = Claim(
    name="registry-download",
    sentence="the hub's own server sends a GiB to `hf download` for at most 0.9 s CPU",
    bound=0.9,
    unit=A_GIB,
)
RANGES = Claim(
    name="registry-ranges",
    sentence="the hub's own server sends a GiB in eight ranges for at most 0.9 s CPU",
    bound=0.9,
    unit=A_GIB,
)
BEHIND = Claim(
    name="registry-download-nginx",
    sentence="hub and nginx send a GiB to `hf download` for at most 0.2 s CPU",
    bound=0.2,
    unit=A_GIB,
)
STATIC = Claim(
    name="registry-download-static",
    sentence="hub and nginx cost at most 1.3 times nginx with a plain file, curl included",
    bound=1.3,
    unit=A_GIB,
)
PEER = Claim(
    name="registry-download-olah",
    sentence="the hub's own server costs at most half of Olah with the file in its cache",
    bound=0.5,
    unit=A_GIB,
)
LFS = Claim(
    name="registry-upload-lfs",
    sentence="an upload by Git LFS costs the server at most twice `cp` and one SHA-256 of the file",
    bound=2.0,
    unit=A_GIB,
)
COLD = Claim(
    name="registry-upload-xet",
    sentence="an upload by Xet costs the server at most 3 times `cp` and one SHA-256 of the file",
    bound=3.0,
    unit=A_GIB,
)
KNOWN = Claim(
    name="registry-upload-known",
    sentence="an upload of known content costs the server at most 0.05 s CPU a GiB",
    bound=0.05,
    unit=A_GIB,
)
UNSENT = Claim(
    name="registry-upload-known-xorbs", sentence="an upload of known content sends no content", bound=0, unit="xorbs"
)
CHANGED = Claim(
    name="registry-upload-changed",
    sentence="a file changed by 1 % in ten places sends at most 5 % of it",
    bound=0.05,
    unit="of the bytes",
)
REBUILT = Claim(
    name="registry-upload-changed-cpu",
    sentence="a file changed by 1 % costs the server at most 2 s CPU a GiB",
    bound=2.0,
    unit=A_GIB,
)
FOLDER = Claim(
    name="registry-many-files",
    sentence=f"a worker that takes a folder of {MANY:,} files holds at most 200 MiB",
    bound=200 * MIB,
    unit="B",
)
CROWD = Claim(
    name="registry-clients",
    sentence=f"{AT_ONCE} clients at once cost at most 1.3 times as much as one after the other",
    bound=1.3,
    unit="s CPU",
)
PATIENT = Claim(
    name="registry-slow-clients",
    sentence=f"{SLOW} clients that hardly read let others wait at most 1.5 times as long",
    bound=1.5,
    unit="s",
)

VERSIONS = {
    "hfbench": hfbench.__version__,
    **{name: version(name) for name in ("huggingface_hub", "hf-xet", "granian")},
}


class Bench:
    """The service, a large file in it, and what is measured with them."""

    def __init__(self, service: Service, size: int, rounds: int) -> None:
        self.service, self.size, self.rounds = service, size, rounds
        self.scratch = service.folder / "scratch"
        self.static = service.folder / "static"
        self.numbers = count()
        self.clients: list[float] = []
        for folder in (self.scratch, self.static):
            folder.mkdir()

    def run(self, claim: Claim, subject: Measure, peer: Measure | None = None, **notes: float) -> Record:
        """One claim; beside the `notes` stand the size and, where a client ran, its median CPU seconds a GiB."""
        told = {"bytes": self.size, **notes}
        clients: list[float] = []

        def noting() -> float:
            self.clients.clear()
            value = subject()
            clients.extend(self.clients)
            if clients:
                told["client"] = round(statistics.median(clients), 3)
            return value

        return run(claim, noting, peer, rounds=self.rounds, versions=VERSIONS, notes=told)

    def home(self) -> Path:
        """A folder that no client has used."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        return self.scratch / "home"

    def server(self, deed: Callable[[], object], size: int) -> float:
        """CPU seconds a GiB of everything that serves."""
        before = self.service.cpu()
        self.clients.append(children_cpu(deed) / (size / GIB))
        time.sleep(SETTLED)
        return (self.service.cpu() - before) / (size / GIB)

    def download(self) -> None:
        """By `hf download`, into an empty cache."""
        stock(["download", REPO, "--quiet"], self.service.client(self.home()), self.scratch)

    def upload(self, repo: str, file: Path, **more: str) -> None:
        """By `hf upload`, of a client that knows nothing of what is there."""
        words = ["upload", repo, str(file), "model.bin", "--quiet"]
        stock(words, {**self.service.client(self.home()), **more}, self.scratch)

    def curl(self, *words: str) -> None:
        """Quietly into nothing."""
        authorized = ["-H", f"Authorization: Bearer {self.service.hub.writer}"]
        subprocess.run(
            ["curl", "-sf", "--no-progress-meter", *authorized, *words], check=True, stdout=subprocess.DEVNULL
        )

    def ranges(self) -> None:
        """One part after the other."""
        length = self.size // PARTS
        for start in range(0, self.size, length):
            self.curl("-r", f"{start}-{start + length - 1}", self.service.hub.url + ADDRESS)


def random_file(path: Path, size: int) -> Path:
    """Content that nothing else has."""
    with path.open("wb") as file:
        for _ in range(size // (16 * MIB)):
            file.write(os.urandom(16 * MIB))
    return path


def children_cpu(deed: Callable[[], object]) -> float:
    """CPU seconds of the programs it runs."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    deed()
    return spent() - before


def downloads(bench: Bench) -> Iterator[Record]:
    """Without nginx and behind it; the first download after a start, which is hashed on its way, is a note."""
    service = bench.service
    service.start()
    first = bench.server(bench.download, bench.size)
    server = partial(bench.server, bench.download, bench.size)
    yield bench.run(DOWNLOAD, server, first_after_a_start=first)
    yield bench.run(RANGES, partial(bench.server, bench.ranges, bench.size))
    yield from beside_olah(bench)
    if NGINX is None:
        print("left out: everything behind nginx; it is not on this machine")
        return
    service.start(accel=True)
    bench.download()  # hashed on its way
    yield bench.run(BEHIND, server)

    def both(url: str) -> float:
        before = service.cpu()
        client = children_cpu(partial(bench.curl, url))
        return client + service.cpu() - before

    yield bench.run(STATIC, partial(both, service.hub.url + ADDRESS), partial(both, f"{service.static}/model.bin"))
    service.start()


def beside_olah(bench: Bench) -> Iterator[Record]:
    """The same stock download from Olah, which has the file in its cache by then."""
    found = command_of(OLAH, "olah-cli")
    if not isinstance(found, Path):
        print(f"left out: {PEER.sentence}; {found}")
        return
    try:
        with olah(found, bench.service.folder, bench.service.hub.url) as (url, leader):

            def peer() -> float:
                before = cpu_of_group(leader)
                environment = client_environment(url, bench.home(), bench.service.hub.writer)
                stock(["download", REPO, "model.bin", "--quiet"], environment, bench.scratch)
                return (cpu_of_group(leader) - before) / (bench.size / GIB)

            peer()  # fills its cache
            yield bench.run(PEER, partial(bench.server, bench.download, bench.size), peer)
    except RuntimeError as error:
        print(f"left out: {PEER.sentence}; {error}")


def uploads(bench: Bench, file: Path) -> Iterator[Record]:
    """New content by both ways, then content that is nearly known, then one that is known."""
    size, other = bench.size, bench.service.folder / "other.bin"

    def fresh(**more: str) -> float:
        random_file(other, size)
        return bench.server(partial(bench.upload, f"team/new{next(bench.numbers)}", other, **more), size)

    def bare() -> float:
        code = "import hashlib,sys; hashlib.file_digest(open(sys.argv[1], 'rb'), 'sha256')"
        copied = bench.service.folder / "copied.bin"
        hashing = children_cpu(partial(subprocess.run, [sys.executable, "-c", code, str(file)], check=True))
        copying = children_cpu(partial(subprocess.run, ["cp", "--reflink=never", str(file), str(copied)], check=True))
        copied.unlink()
        return (hashing + copying) / (size / GIB)

    yield bench.run(LFS, partial(fresh, HF_HUB_DISABLE_XET="1"), bare)
    yield bench.run(COLD, fresh, bare)
    other.unlink()
    costs: list[float] = []
    yield bench.run(CHANGED, partial(changed, bench, file, costs))
    spent = iter(costs)
    yield bench.run(REBUILT, lambda: next(spent))
    yield from of_known(bench)


def of_known(bench: Bench) -> Iterator[Record]:
    """Content that another repository has, twice as large: what a request costs anyway is not the subject."""
    size = 2 * bench.size
    file = random_file(bench.service.folder / "known.bin", size)
    bench.upload("team/first", file)
    sent: list[tuple[int, int]] = []

    def known() -> float:
        before = bench.service.counters()
        spent = bench.server(partial(bench.upload, f"team/known{next(bench.numbers)}", file), size)
        after = bench.service.counters()
        sent.append((after[0] - before[0], after[1] - before[1]))
        return spent

    small = random_file(bench.service.folder / "small.bin", SMALL)
    bench.upload("team/small0", small)
    fixed = bench.server(partial(bench.upload, "team/small1", small), GIB)
    yield bench.run(KNOWN, known, bytes=size, s_of_16_mib=fixed)
    kept = iter([float(xorbs) for _, xorbs in sent])
    bodies = statistics.median(each for each, _ in sent)
    yield run(UNSENT, lambda: next(kept), rounds=bench.rounds, versions=VERSIONS, notes={"bytes_of_bodies": bodies})


def changed(bench: Bench, file: Path, costs: list[float]) -> float:
    """The share of a file's bytes that is sent when a hundredth of it is new; `costs` gets the server's CPU a GiB."""
    length = bench.size // 100 // EDITS
    with file.open("r+b") as opened:
        for place in range(EDITS):
            opened.seek(bench.size // EDITS * place + int.from_bytes(os.urandom(3), "little"))
            opened.write(os.urandom(length))
    before = bench.service.counters()[0]
    costs.append(bench.server(partial(bench.upload, REPO, file), bench.size))
    return (bench.service.counters()[0] - before) / bench.size


def many_files(bench: Bench) -> Record:
    """A folder of so many small files, by `hf upload`, to a server that has just started."""
    folder = bench.service.folder / "many"
    for number in range(MANY):
        path = folder / str(number % 100) / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {number}\n" * 20)

    def peak() -> float:
        bench.service.start()
        environment = bench.service.client(bench.home())
        stock(["upload", f"team/many{next(bench.numbers)}", str(folder), "--quiet"], environment, bench.scratch)
        return float(bench.service.peak_bytes())

    return run(FOLDER, peak, rounds=2, warmup=0, versions=VERSIONS, notes={"files": MANY})


def crowds(bench: Bench) -> Iterator[Record]:
    """Many clients at once, and many that hardly read."""
    service = bench.service
    bench.upload("team/small", random_file(bench.service.folder / "small.bin", SMALL))
    url = f"{service.hub.url}/team/small/resolve/main/model.bin"
    asked = [word for _ in range(AT_ONCE) for word in ("-o", "/dev/null", url)]
    at_once = ["-Z", "--parallel-immediate", "--parallel-max", str(AT_ONCE), *asked]
    size = AT_ONCE * SMALL
    bench.curl(url)
    server = [partial(bench.server, partial(bench.curl, *words), size) for words in (at_once, asked)]
    yield bench.run(CROWD, *server)

    def latency() -> float:
        taken = []
        with service.hub.client(service.hub.writer) as client:
            for _ in range(30):
                begun = time.perf_counter()
                client.get("/api/models/team/small").raise_for_status()
                taken.append(time.perf_counter() - begun)
        return statistics.median(taken)

    bench.download()  # hashed on its way: what follows is sent as it lies

    def beside_slow() -> float:
        with slow_readers(service):
            return latency()

    yield bench.run(PATIENT, beside_slow, latency)


@contextmanager
def slow_readers(service: Service) -> Iterator[None]:
    """So many clients that asked for the large file, half of them for a part of it, and read one byte."""
    where = (service.hub.settings.host, service.hub.settings.port)
    with ExitStack() as stack:
        lines = [stack.enter_context(socket.socket()) for _ in range(SLOW)]
        for number, line in enumerate(lines):
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(where)
            part = "Range: bytes=1-\r\n" if number % 2 else ""
            authorized = f"Authorization: Bearer {service.hub.writer}\r\n"
            line.sendall(f"GET {ADDRESS} HTTP/1.1\r\nHost: hub\r\n{authorized}{part}\r\n".encode())
        for line in lines:
            line.recv(1)
        yield


def main() -> None:
    """Found a hub, measure everything, keep the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0, help="size of the large file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to work, on the disk to measure")
    parser.add_argument("--only", default="downloads,uploads,many,crowds")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-registry-", dir=asked.folder) as name:
        service = Service(Path(name))
        bench = Bench(service, int(asked.gib * GIB) // (16 * MIB) * 16 * MIB, asked.rounds)
        file = random_file(bench.static / "model.bin", bench.size)
        service.start()
        records: list[Record] = []
        try:
            bench.upload(REPO, file)
            parts: dict[str, Callable[[], Iterable[Record]]] = {
                "downloads": lambda: downloads(bench),
                "crowds": lambda: crowds(bench),
                "uploads": lambda: uploads(bench, file),
                "many": lambda: [many_files(bench)],
            }
            for part, measured in parts.items():
                if part in asked.only.split(","):
                    records += measured()
        finally:
            service.stop()
    finish(*records)


if __name__ == "__main__":
    main()
