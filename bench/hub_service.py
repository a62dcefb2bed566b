"""A hub to be measured, nginx before it or alone, and Olah: started, asked for their CPU seconds, stopped."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests" / "registry"))

from hub_process import HubProcess, free_port, make_hub  # noqa: E402

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
TICKS = os.sysconf("SC_CLK_TCK")
ACCEL = "/_files"
PATIENCE = 60.0
REPO_COUNTER = re.compile(r'^hfbench_registry_requests_total\{route="[^"]*/xorbs/[^"]*",status="200"\} (\d+)', re.M)
RECEIVED = re.compile(r"^hfbench_registry_received_bytes_total (\d+)", re.M)


def cpu_of_group(leader: int) -> float:
    """CPU seconds of the processes in a group, and of those that have ended and were waited for."""
    total = 0
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                told = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(told[2]) == leader:
                total += sum(map(int, told[11:15]))
    return total / TICKS


class Service:
    """The hub and its people; `accel` puts nginx before the same content."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hub: HubProcess = make_hub(folder)
        self.plain = self.hub.settings
        self.nginx: subprocess.Popen[bytes] | None = None
        self.static = f"http://127.0.0.1:{free_port()}"
        """Where nginx serves the folder `static` and nothing else."""

    def start(self, *, accel: bool = False) -> None:
        """The hub anew, as its own server or behind nginx."""
        self.stop()
        front = free_port()
        more = {"accel_prefix": ACCEL, "public_url": f"http://127.0.0.1:{front}"} if accel else {}
        self.hub.settings = self.plain.changed(**more)
        self.hub.settings.layout.settings.write_text(self.hub.settings.toml())
        self.hub.start(self.plain.base_url)
        if accel:
            self.nginx = start_nginx(self.folder, front, self.hub, self.static)

    def stop(self) -> None:
        """Both."""
        if self.nginx is not None:
            self.nginx.send_signal(signal.SIGTERM)
            self.nginx.wait(PATIENCE)
            self.nginx = None
        self.hub.stop()

    def cpu(self) -> float:
        """CPU seconds of everything that serves."""
        leaders = [process.pid for process in (self.hub.process, self.nginx) if process]
        return sum(map(cpu_of_group, leaders))

    def counters(self) -> tuple[int, int]:
        """Bytes of all bodies that were taken in, and xorbs among them."""
        with self.hub.client(self.hub.admin) as client:
            text = client.get("/metrics").text
        received = RECEIVED.search(text)
        assert received is not None
        return int(received[1]), sum(map(int, REPO_COUNTER.findall(text)))

    def peak_bytes(self) -> int:
        """The most memory that the worker has held."""
        assert self.hub.process
        words = ["ps", "-o", "pid=", "--ppid", str(self.hub.process.pid)]
        pids = subprocess.run(words, capture_output=True, text=True).stdout.split()
        told = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
        return max(int(text.split("VmHWM:")[1].split()[0]) for text in told) << 10

    def client(self, home: Path) -> dict[str, str]:
        """The environment of a stock client that knows nothing yet."""
        return client_environment(self.hub.url, home, self.hub.writer)


def client_environment(url: str, home: Path, token: str = "") -> dict[str, str]:
    """Variables of a stock client of an endpoint, whose caches are in `home`."""
    told = {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_OFFLINE": "0"}
    return {**os.environ, **told, "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "HF_TOKEN": token}


def start_nginx(folder: Path, port: int, hub: HubProcess, static: str) -> subprocess.Popen[bytes]:
    """nginx by the lines of docs/registry.md without its TLS, and beside it a site of plain files."""
    site = (CHECKOUT / "docs" / "registry.md").read_text().partition("```nginx\n")[2].partition("```")[0]
    site = re.sub(r"\n *ssl_certificate.*", "", site)
    site = site.replace("127.0.0.1:8080", f"127.0.0.1:{hub.settings.port}")
    site = site.replace("listen 443 ssl", f"listen 127.0.0.1:{port}").replace("/srv/hub/", f"{hub.settings.folder}/")
    site += f"server {{ listen {static.removeprefix('http://')}; root {folder}/static; sendfile on; tcp_nopush on; }}\n"
    owner = "user root;" if os.geteuid() == 0 else ""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    drafts = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    around = f"{owner} daemon off; pid {folder}/nginx.pid; events {{}} http {{ access_log off; {drafts}\n"
    (folder / "nginx.conf").write_text(f"{around}{site}}}\n")
    words = [str(NGINX), "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"]
    process = subprocess.Popen(words, start_new_session=True)
    until_it_answers(f"http://127.0.0.1:{port}/health", process)
    return process


@contextmanager
def olah(command: Path, folder: Path, upstream: str) -> Iterator[tuple[str, int]]:
    """Olah as a mirror of an endpoint: its URL, and the leader of its group."""
    port, folder = free_port(), folder / "olah"
    folder.mkdir()
    where = upstream.removeprefix("http://")
    words = [str(command), "--host", "127.0.0.1", "--port", str(port), "--repos-path", str(folder / "repos")]
    words += ["--log-path", str(folder / "logs"), "--hf-scheme", "http", "--hf-netloc", where, "--hf-lfs-netloc", where]
    words += ["--mirror-scheme", "http", "--mirror-netloc", f"127.0.0.1:{port}"]
    words += ["--mirror-lfs-netloc", f"127.0.0.1:{port}"]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(words, stdout=said, stderr=said, start_new_session=True, cwd=folder)
    try:
        until_it_answers(f"http://127.0.0.1:{port}/", process)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)


def until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    """RuntimeError when the process ends first, or says nothing for a minute."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx2.get(url)
            return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"nothing answers at {url}")


def stock(words: Sequence[str], environment: dict[str, str], cwd: Path) -> None:
    """Run `hf` of this environment; RuntimeError with its last words when it fails."""
    command = [str(Path(sys.executable).with_name("hf")), *words]
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"hf {words[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
