"""What every test shares: a home of its own, toy actions, and a Python to start."""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis
import pytest
import pytest_textual_snapshot

from hfbench.line_width import lines_of

if TYPE_CHECKING:
    from ray_lab import RayLab
    from slurm_lab import SlurmLab
    from ssh_lab import SshLab

T = TypeVar("T")

# A busy machine is slow, which is no finding; in CI a commit is judged by the same examples each time.
hypothesis.settings.register_profile(
    "suite",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")

TOYS = Path(__file__).parent / "toys"
UNPRIVILEGED = Path(__file__).parent / "unprivileged.py"
REFUSED = 77
"""What it exits with when it cannot make a lesser process."""
FOLDERS = count()
"""Numbers of the folders of tests."""
RAY = "ray"
LONGEST = (
    RAY,
    "tests/bench/test_gpu.py",
    "tests/engines/builders/test_builders.py",
    "tests/gpu/kernels/test_library.py",
    "tests/engines/running/test_engines.py",
    "tests/actions/test_engine_build.py",
    "tests/engines/test_build.py",
    "tests/engines/test_examples.py",
    "tests/jobs/executors/test_slurm.py",
    "tests/gpu/kernels/test_static.py",
    "tests/gpu/test_generate_modes.py",
    "tests/gpu/kernels/test_interpret.py",
    "tests/gpu/kernels/test_tune.py",
    "tests/gpu/kernels/test_dropin.py",
    "tests/gpu/test_generate.py",
    "tests/terminal/test_session.py",
    "tests/convert/test_megatron_core.py",
    "tests/convert/walls/test_core.py",
    "tests/convert/walls/test_forward.py",
    "tests/jobs/executors/test_ssh.py",
)
"""Groups of many seconds: begun last, one of them would leave the other processes with nothing to do. Those that wait
for a cluster or a second box stand apart: while one waits, the others have the processors.
"""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks of this suite, and what its thousands of processes inherit.

    Without bytecode each would compile all of hfbench that it imports; with more threads than its worker's core, torch
    spends three times the CPU seconds on tensors of a few kilobytes.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    config.addinivalue_line("markers", "unprivileged: permissions must bind; root runs the test in a lesser process")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process a file, all that needs a Ray in one, the longest first."""
    places = {group: place for place, group in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(_group(item), len(places)))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and not in what was imported and collected: it took a tenth of a screen's test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _group(item: pytest.Item) -> str:
    """Its file; tests that need a Ray are one group, as no two can be on a machine."""
    if "ray_lab" in getattr(item, "fixturenames", ()):
        return RAY
    return item.nodeid.partition("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What runs a model in this process forbids the network for good; tests behind it may have a hub of their own."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ.pop(name, None)
    if constants := sys.modules.get("huggingface_hub.constants"):
        constants.HF_HUB_OFFLINE = False  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that root cannot run as it is runs once more, in a process that permissions bind."""
    if os.geteuid() or not pyfuncitem.get_closest_marker("unprivileged") or _bound():
        return None
    place = pyfuncitem.funcargs["tmp_path"] / "unprivileged"  # its usual one is below those of earlier runs, to remove
    words = [sys.executable, str(UNPRIVILEGED), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    words += ["--basetemp", str(place)]
    words.append(pyfuncitem.nodeid.removesuffix(f"@{_group(pyfuncitem)}"))  # which xdist put behind its name
    child = subprocess.run(words, cwd=pyfuncitem.config.rootpath, capture_output=True, text=True, check=False)
    if child.returncode == REFUSED:
        pytest.skip("root may not give up its rights here")
    assert child.returncode == 0, child.stdout[-4000:] + child.stderr[-1000:]
    return True


def _bound() -> bool:
    """True when permissions bind this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "closed"
        path.touch(mode=0)
        return not os.access(path, os.R_OK)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for one test. Pytest's own looks for a free number among those of all tests before it."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(FOLDERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HFBENCH_HOME and the Hugging Face cache of the test: nothing of the developer's is read or written."""
    folder = tmp_path / "home"
    monkeypatch.setenv("HFBENCH_HOME", str(folder))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("HF_HUB_CACHE", "HF_TOKEN", "NO_COLOR", "HFBENCH_ACTIONS", "HFBENCH_DEMO_GPUS"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def terminal() -> Iterator[None]:
    """Results as on a terminal of 80 columns; on a pipe, as in any other test, nothing of them is cut."""
    with lines_of(80):
        yield


@pytest.fixture(scope="session")
def worker_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with torch, transformers and their dependencies, without anything the front ends need."""
    from worker_venv import make_worker_venv

    return make_worker_venv(tmp_path_factory.mktemp("worker") / "venv")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a tmpfs with these options; for the tests that need a real full or read-only disk."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk")
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture(scope="session")
def built_engine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The engine of a builder for a tiny llama, which nobody may change: built once for all processes of a run, or once
    for many runs in the folder HFBENCH_TEST_ENGINES names."""
    from built_engines import built

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    root = Path(os.environ.get("HFBENCH_TEST_ENGINES") or shared / "built-engines")
    return lambda builder: built(builder, root)


@pytest.fixture(scope="session")
def slurm_lab() -> Iterator[SlurmLab]:
    """A Slurm of two nodes; who takes one of them away calls `mend()` at the end."""
    from slurm_lab import slurm

    with _or_skip(slurm()) as lab:
        yield lab


@pytest.fixture(scope="session")
def ssh_lab() -> Iterator[SshLab]:
    """An sshd on the loopback, and hosts that are none."""
    from ssh_lab import ssh

    with _or_skip(ssh()) as lab:
        yield lab


@pytest.fixture(scope="session")
def ray_lab() -> Iterator[RayLab]:
    """A Ray of two nodes; who takes one of them away calls `mend()` at the end."""
    from ray_lab import ray

    with _or_skip(ray()) as lab:
        yield lab


@contextmanager
def _or_skip(making: AbstractContextManager[T]) -> Iterator[T]:
    """A lab, or a skipped test with the reason why there is none."""
    from daemons import CannotBeHad

    with ExitStack() as ends:
        try:
            lab = ends.enter_context(making)
        except CannotBeHad as error:
            pytest.skip(str(error))
        yield lab


@pytest.fixture
def toy_actions(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with toy actions, known to this process and to every process it starts."""
    from hfbench.actions.registry import ACTIONS_PATH

    monkeypatch.setenv(ACTIONS_PATH, str(TOYS))
    return TOYS


@pytest.fixture
def hfbench(home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the real command in a real process, output captured as text."""

    def run(*words: str | Path, env: dict[str, str] | None = None, **more: object) -> subprocess.CompletedProcess[str]:
        told = {"capture_output": True, "text": True, "timeout": 120, "stdin": subprocess.DEVNULL, **more}
        return subprocess.run(command(words), env={**os.environ, **(env or {})}, **told)  # type: ignore[call-overload]

    return run


def command(words: Sequence[str | Path]) -> list[str]:
    """The command line of `hfbench` with the Python of the tests."""
    return [sys.executable, "-m", "hfbench", *map(str, words)]


def pictures_folder(cls: type, *, test_location: Any) -> str:
    """Golden screens live in snapshots/, one folder a test module."""
    return str(Path(__file__).parents[1] / "snapshots" / Path(str(test_location.filepath)).stem)


pytest_textual_snapshot.SVGImageExtension.dirname = classmethod(pictures_folder)  # type: ignore[assignment]
